// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthcases

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// A Fixture is a status for the objects of a library rule, and their expected health.
type Fixture struct {
	Want appsv1alpha1.Health

	// content is the status; keys that begin with a full stop are outside it.
	content map[string]any
}

// Fixtures reads a folder of fixtures, by the first kind of their rule, written "Kind.group". In a file each rule has a
// list, in which each entry maps one health to a status. In a list called conditions, "Ready=False/Reason: Message" is
// a condition. ".spec", ".conditions" of the object itself, and ".generation", ".annotations" and ".labels" of the
// metadata are given beside the status. An empty value means no status.
func Fixtures(dir string) (map[string][]Fixture, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot look for fixtures in %q: %w", dir, err)
	}
	all := map[string][]Fixture{}
	for _, path := range paths {
		file, err := readFixtures(path)
		if err != nil {
			return nil, err
		}
		for rule, entries := range file {
			for n, entry := range entries {
				if len(entry) != 1 {
					return nil, fmt.Errorf("fixture %d of %q in %q has not one health", n, rule, path)
				}
				for want, content := range entry {
					all[rule] = append(all[rule], Fixture{Want: want, content: content})
				}
			}
		}
	}
	return all, nil
}

// readFixtures reads a file of fixtures.
func readFixtures(path string) (file map[string][]map[appsv1alpha1.Health]map[string]any, err error) {
	data, err := os.ReadFile(path) //nolint:gosec // The folder is the caller's to choose.
	if err != nil {
		return nil, fmt.Errorf("cannot read fixtures: %w", err)
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("cannot parse %q: %w", path, err)
	}
	// As the API server's answers are decoded: a whole number becomes an int64.
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("cannot decode %q: %w", path, err)
	}
	return file, nil
}

// OfFixtures returns the fixtures of a folder as cases, each as an object of the first kind of its rule.
func OfFixtures(dir string) ([]Case, error) {
	fixtures, err := Fixtures(dir)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, rule := range slices.Sorted(maps.Keys(fixtures)) {
		kind, group, _ := strings.Cut(rule, ".")
		for n, f := range fixtures[rule] {
			cases = append(cases, Case{
				Name: fmt.Sprintf("%s, fixture %d", rule, n), Object: f.Object(Example(group, "", kind)), Want: string(f.Want), StatusExpected: true,
			})
		}
	}
	return cases, nil
}

// Key returns the name of the fixtures of a rule with this first kind.
func Key(group, kind string) string {
	if group == "" {
		return kind
	}
	return kind + "." + group
}

// Example returns a kind that a rule's selector matches. A selector has a group or all below a domain, a kind or all,
// and a version or none.
func Example(group, version, kind string) (exampleGroup, exampleVersion, exampleKind string) {
	if domain, below := strings.CutPrefix(group, "*."); below {
		group = "example." + domain
	}
	if kind == "*" {
		kind = "Example"
	}
	if version == "" {
		version = "v1"
	}
	return group, version, kind
}

// Object returns an object of a kind with the status of the fixture.
func (f Fixture) Object(group, version, kind string) *unstructured.Unstructured {
	metadata := map[string]any{"name": "main", "namespace": "default", "generation": int64(1)}
	object := map[string]any{
		"apiVersion": strings.TrimPrefix(group+"/"+version, "/"), "kind": kind, "metadata": metadata, "spec": map[string]any{},
	}
	status := map[string]any{}
	for name, value := range f.content {
		switch name {
		case ".spec":
			object["spec"] = value
		case ".conditions":
			object["conditions"] = expanded("conditions", value)
		case ".generation", ".annotations", ".labels":
			metadata[strings.TrimPrefix(name, ".")] = value
		default:
			status[name] = expanded(name, value)
		}
	}
	if f.content != nil {
		object["status"] = status
	}
	u := &unstructured.Unstructured{Object: object}
	return u.DeepCopy()
}

// expanded expands the conditions in a value.
func expanded(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = expanded(key, v[key])
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, entry := range v {
			if text, ok := entry.(string); ok && name == "conditions" {
				out = append(out, condition(text))
			} else {
				out = append(out, expanded("", entry))
			}
		}
		return out
	}
	return value
}

// condition reads "Type=Status/Reason: Message". A type can have a solidus itself, but not after the equals sign.
func condition(text string) map[string]any {
	text, message, _ := strings.Cut(text, ": ")
	kind, state, _ := strings.Cut(text, "=")
	status, reason, _ := strings.Cut(state, "/")
	c := map[string]any{"type": kind, "status": status}
	if reason != "" {
		c["reason"] = reason
	}
	if message != "" {
		c["message"] = message
	}
	return c
}
