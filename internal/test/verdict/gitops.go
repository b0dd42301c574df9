// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// gitopsPage is the page whose examples are run.
const gitopsPage = "docs/gitops.md"

// examples are what the page tells users to copy.
type examples struct {
	// lua has Argo CD's health checks, by "group/Kind", in which "*" stands for any text without a slash.
	lua map[string]string

	// flux has Flux's expressions by kind.
	flux map[schema.GroupKind]fluxExpressions
}

var fenced = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// read reads the page once.
var read = sync.OnceValues(func() (examples, error) { //nolint:gochecknoglobals // It is read once for all tests of a package.
	out := examples{lua: map[string]string{}, flux: map[schema.GroupKind]fluxExpressions{}}
	text, err := os.ReadFile(filepath.Join(testenv.Root(), gitopsPage))
	if err != nil {
		return examples{}, err
	}
	if err := out.parse(gitopsPage, string(text)); err != nil {
		return examples{}, err
	}
	if len(out.lua) == 0 || len(out.flux) == 0 {
		return examples{}, fmt.Errorf("the page has %d health checks for Argo CD and %d for Flux", len(out.lua), len(out.flux))
	}
	return out, nil
})

func gitops(t *testing.T) examples {
	t.Helper()
	e, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// parse extracts the examples from the text of a page.
func (e examples) parse(page, text string) error {
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		for document := range strings.SplitSeq(block[1], "\n---\n") {
			if err := e.take(document); err != nil {
				return fmt.Errorf("%s: %w in\n%s", page, err, document)
			}
		}
	}
	return nil
}

// take extracts the examples from one YAML document.
func (e examples) take(document string) error {
	var object struct {
		Kind string
		Data map[string]string
		Spec struct {
			HealthCheckExprs []fluxExpressions `json:"healthCheckExprs"`
		}
	}
	if err := yaml.Unmarshal([]byte(document), &object); err != nil {
		return err
	}
	for _, exprs := range object.Spec.HealthCheckExprs {
		gv, err := schema.ParseGroupVersion(exprs.APIVersion)
		if err != nil {
			return err
		}
		e.flux[schema.GroupKind{Group: gv.Group, Kind: exprs.Kind}] = exprs
	}
	customizations := map[string]map[string]string{}
	if err := yaml.Unmarshal([]byte(object.Data["resource.customizations"]), &customizations); err != nil {
		return err
	}
	for kind, c := range customizations {
		if script := c["health.lua"]; script != "" {
			e.lua[kind] = script
		}
	}
	return nil
}

// argo returns the health that Argo CD computes for an object.
func (e examples) argo(kind schema.GroupKind, object *unstructured.Unstructured) (string, error) {
	key := kind.Group + "/" + kind.Kind
	if script, ok := e.lua[key]; ok {
		return runLua(script, object)
	}
	for pattern, script := range e.lua {
		if ok, err := path.Match(pattern, key); err == nil && ok {
			return runLua(script, object)
		}
	}
	return "", fmt.Errorf("%s has no health check for %s", gitopsPage, key)
}
