// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

var (
	observedKind  = regexp.MustCompile(`^<!-- observed: (\S+) (\S+) -->$`)
	reflectedKind = regexp.MustCompile(`^<!-- reflected: (\S+) -->$`)
	mappingRow    = regexp.MustCompile("^\\| `([^`]+)` \\| (?:`([^`]+)`|none.*?) \\|")
)

// TestMappingDocument compares the tables of the document with the schemas, and with the fields of reflections of the
// fixtures.
func TestMappingDocument(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	raw, err := os.ReadFile("../../docs/design/importer-mapping.md")
	if err != nil {
		t.Fatal(err)
	}
	var observed, reflected *apiextensionsv1.JSONSchemaProps
	var kind string
	documented, rows := map[string]bool{}, 0
	for line := range strings.SplitSeq(string(raw), "\n") {
		if m := observedKind.FindStringSubmatch(line); m != nil {
			observed = hub.schemas[schema.GroupKind{Group: m[1], Kind: m[2]}].JSONSchemaProps
		}
		if m := reflectedKind.FindStringSubmatch(line); m != nil {
			kind, reflected = m[1], schemaOfKind(hub, m[1])
		}
		m := mappingRow.FindStringSubmatch(line)
		if m == nil || observed == nil {
			continue
		}
		rows++
		if !hasField(observed, append([]string{"status", "atProvider"}, strings.Split(m[1], ".")...)) {
			t.Errorf("no managed resource has the observed field %q", m[1])
		}
		if m[2] == "" {
			continue
		}
		documented[kind+" "+m[2]] = true
		if !hasField(reflected, strings.Split(strings.ReplaceAll(m[2], "[]", ""), ".")) {
			t.Errorf("%s has no field %q", kind, m[2])
		}
	}
	if rows < 90 {
		t.Errorf("only %d rows were found in the document", rows)
	}
	for _, path := range reflectedPaths(t, hub) {
		if !coveredBy(documented, path) {
			t.Errorf("the document does not say where %s comes from", path)
		}
	}
}

func schemaOfKind(hub installed, kind string) *apiextensionsv1.JSONSchemaProps {
	for gvk, s := range hub.schemas {
		if gvk.Kind == kind && strings.HasSuffix(gvk.Group, "cluster.x-k8s.io") {
			return s.JSONSchemaProps
		}
	}
	return nil
}

func hasField(s *apiextensionsv1.JSONSchemaProps, path []string) bool {
	for _, field := range path {
		if s != nil && s.Type == "array" && s.Items != nil {
			s = s.Items.Schema
		}
		if s == nil {
			return false
		}
		next, ok := s.Properties[field]
		if !ok {
			return false
		}
		s = &next
	}
	return true
}

// notObserved are fields whose values come from the import.
var notObserved = regexp.MustCompile(
	`^spec\.(identityRef|credentialsRef|eksClusterName|eksNodegroupName|clusterName|name|region|project|location|resourceGroupName|subscriptionID)\b`)

// reflectedPaths are the fields of the control planes and pools of all fixtures as "Kind path".
func reflectedPaths(t *testing.T, hub installed) []string {
	t.Helper()
	var out []string
	for _, name := range layouts.Names() {
		f := loadFixture(t, name)
		imp := newImport(f)
		_, all := hub.reflect(t, imp, served(imp.Cloud, false, true), f)
		for _, o := range all.Objects {
			if o.Role != reflection.RoleControlPlane && o.Role != reflection.RoleInfraPool {
				continue
			}
			spec, _ := o.Object.Object["spec"].(map[string]any)
			for field := range spec {
				if path := "spec." + field; !notObserved.MatchString(path) {
					out = append(out, o.Object.GetKind()+" "+path)
				}
			}
		}
	}
	return out
}

// coveredBy reports whether the field, or one below it, is documented.
func coveredBy(documented map[string]bool, path string) bool {
	for known := range documented {
		if known == path || strings.HasPrefix(known, path+".") || strings.HasPrefix(known, path+"[") {
			return true
		}
	}
	return false
}
