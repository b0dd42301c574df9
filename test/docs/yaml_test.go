// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/crdvalidation"
)

// foreign are the API groups of other projects in examples, whose schemas are not here.
func foreign() []string {
	return []string{
		"acmeco.org", "apiextensions.crossplane.io", "argoproj.io", "cert-manager.io", "example.org", "kustomize.config.k8s.io",
		"toolkit.fluxcd.io",
	}
}

// wrongOnPurpose is the command with which a page shows a file that is refused.
const wrongOnPurpose = "cat bad.yaml"

// document is a YAML document of a page.
type document struct{ place, text string }

// documents returns the documents in YAML blocks, in files that a console block shows, and the objects that it gets.
func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	add := func(place, text string) {
		text = strings.ReplaceAll(text, "...", "") // It marks what a text leaves out.
		for part := range strings.SplitSeq("\n"+text, "\n---\n") {
			all = append(all, document{place, part})
		}
	}
	for page, text := range files(t, ".md") {
		for _, f := range fences(page, text) {
			if f.language == "yaml" {
				add(f.place, f.text)
			}
		}
	}
	shows := regexp.MustCompile(`^cat \S+\.yaml$|^kubectl get \S+ \S+ .*-o yaml$`)
	for _, s := range allSteps(t) {
		if shows.MatchString(s.command) && s.command != wrongOnPurpose {
			add(s.place, s.prints)
		}
	}
	if len(all) < 30 {
		t.Fatalf("found only %d documents", len(all))
	}
	return all
}

// TestYAMLFitsTheSchemas validates each object on a page against the schema of its kind, strictly: Masthead's CRDs and
// ClusterProfile as an API server does, kinds of Kubernetes as kubectl does. A part of an object has to be a part of a
// kind of Masthead or of the example of a managed resource, of a ClusterRole, of the config file or of a schema.
func TestYAMLFitsTheSchemas(t *testing.T) {
	validators := readCRDs(t)
	decoder := serializer.NewCodecFactory(clientgoscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	checked := map[string]int{}
	for _, d := range documents(t) {
		content, err := decode(d.text)
		if err != nil {
			t.Errorf("%s: %v", d.place, err)
			continue
		}
		object := &unstructured.Unstructured{Object: content}
		kind := object.GroupVersionKind()
		switch {
		case content["kind"] == nil:
			if err := fits(t, validators, content); err != nil {
				t.Errorf("%s: %v", d.place, err)
			}
			checked["part"]++
		case validators[kind] != nil:
			if err := validators.Validate(t.Context(), object); err != nil {
				t.Errorf("%s: %v", d.place, err)
			}
			checked["ours"]++
		case clientgoscheme.Scheme.Recognizes(kind):
			if _, _, err := decoder.Decode([]byte(d.text), nil, nil); err != nil {
				t.Errorf("%s: %v", d.place, err)
			}
			checked["Kubernetes"]++
		case slices.ContainsFunc(foreign(), func(group string) bool {
			return kind.Group == group || strings.HasSuffix(kind.Group, "."+group)
		}):
			checked["foreign"]++
		default:
			t.Errorf("%s: there is no schema for %s", d.place, kind)
		}
	}
	for _, what := range []string{"part", "ours", "Kubernetes", "foreign"} {
		if checked[what] == 0 {
			t.Errorf("found nothing to check of: %s", what)
		}
	}
}

// decode reads a document with the types of numbers that an API server gives them.
func decode(text string) (map[string]any, error) {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if strings.HasPrefix(string(data), "[") {
		data = fmt.Appendf(nil, "{%q:%s}", "references", data) // A list is one of references.
	}
	err = json.Unmarshal(data, &content)
	return content, err
}

func readCRDs(t *testing.T) crdvalidation.Validators {
	t.Helper()
	var crds []*apiextensionsv1.CustomResourceDefinition
	manifests := files(t, ".yaml")
	for _, path := range slices.Sorted(maps.Keys(manifests)) {
		if !regexp.MustCompile(`^(config/(crd/bases|crd/workload|clusterprofiles)|pkg/references/testdata/managedexample)/[^/]+\.[^/]+_`).MatchString(path) {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict([]byte(manifests[path]), crd); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		crds = append(crds, crd)
	}
	validators, err := crdvalidation.New(crds...)
	if err != nil {
		t.Fatal(err)
	}
	return validators
}

// fits returns nil if a part of an object can be a part of some kind, or of its spec.
func fits(t *testing.T, validators crdvalidation.Validators, part map[string]any) error {
	t.Helper()
	if len(part) == 1 && part["rules"] != nil {
		return nil // A part of a ClusterRole.
	}
	flags := files(t, "flags.md")["docs/reference/flags.md"]
	if !slices.ContainsFunc(leaves("", part), func(path string) bool { return !strings.Contains(flags, "`"+path+"`") }) {
		return nil // The config file.
	}
	data, err := yaml.Marshal(part)
	if err != nil {
		return err
	}
	if yaml.UnmarshalStrict(data, &map[string]apiextensionsv1.JSONSchemaProps{}) == nil {
		return nil // Properties of a schema.
	}
	var problems []string
	for _, kind := range slices.SortedFunc(maps.Keys(validators), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		for _, content := range []map[string]any{part, {"spec": part}} {
			object := &unstructured.Unstructured{Object: maps.Clone(content)}
			object.SetGroupVersionKind(kind)
			err := validators.Validate(t.Context(), object)
			// Missing fields are in the rest of the object.
			if err == nil || !strings.HasPrefix(err.Error(), "unknown fields") {
				return nil
			}
			problems = append(problems, err.Error())
		}
	}
	return fmt.Errorf("it is a part of nothing that is known:\n%s", strings.Join(problems, "\n"))
}

// leaves returns the paths of the values in a map and in the maps inside it.
func leaves(prefix string, content map[string]any) []string {
	var paths []string
	for name, value := range content {
		if below, ok := value.(map[string]any); ok {
			paths = append(paths, leaves(prefix+name+".", below)...)
			continue
		}
		paths = append(paths, prefix+name)
	}
	return paths
}
