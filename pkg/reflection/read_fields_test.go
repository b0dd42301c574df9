// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// observedField is a field of status.atProvider.
type observedField struct {
	Kind reflection.Kind
	Path string
}

// TestProvidersHaveWhatIsRead compares a record of the fields that are read, and of the groups that have them, with the
// providers: their cluster-scoped groups in the pinned versions, and the namespaced ones. Those of Azure and Google
// Cloud are made, or with MASTHEAD_PROVIDER_CRDS those of the newest versions.
func TestProvidersHaveWhatIsRead(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	got, names := map[string]bool{}, map[string]bool{}
	for _, name := range layouts.Names() {
		f := loadFixture(t, name)
		imp := importOfAll(f)
		for _, namespaced := range []bool{true, false} {
			observed, _ := hub.observe(t, imp, served(imp.Cloud, namespaced, !namespaced), f, true)
			for _, field := range hub.lookedUp(t, imp, observed) {
				steps := strings.Split(field.Path, ".")
				names[steps[len(steps)-1]] = true
				line := field.Kind.String() + " " + field.Path + ":"
				for i, gk := range []schema.GroupKind{field.Kind.Legacy(), field.Kind.Namespaced()} {
					if hasField(hub.schemas[gk].JSONSchemaProps, append([]string{"status", "atProvider"}, steps...)) {
						line += []string{" pinned", " namespaced"}[i]
					}
				}
				if got[line] = true; strings.HasSuffix(line, ":") {
					t.Errorf("no provider has %s", line)
				}
			}
		}
	}
	content, err := os.ReadFile("testdata/read.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(content)), "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("testdata/read.txt: -want, +got:\n%s", diff)
	}
	checkLookups(t, names)
}

// required are the fields without which nothing is read.
var required = map[observedField]bool{
	{reflection.EKSCluster, "arn"}: true, {reflection.EKSCluster, "endpoint"}: true,
	{reflection.AKSCluster, "id"}: true, {reflection.AKSCluster, "fqdn"}: true, {reflection.AKSCluster, "privateFqdn"}: true,
	{reflection.GKECluster, "id"}: true, {reflection.GKECluster, "endpoint"}: true,
	{reflection.GKECluster, "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint"}: true,
}

// TestFieldThatNoProviderHasIsLossy removes each field that is read from the installed provider.
func TestFieldThatNoProviderHasIsLossy(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	for _, name := range layouts.Names() {
		f := loadFixture(t, name)
		imp := importOfAll(f)
		imp.DNSEndpoint = imp.Cloud == reflection.GKE
		observed, _ := hub.observe(t, imp, served(imp.Cloud, true, false), f, true)
		// Newer providers have no taints of the default pool.
		always := map[reflection.Cloud][]string{reflection.AKS: {"KubernetesCluster.defaultNodePool.nodeTaints"}}[imp.Cloud]
		if got := missing(t, imp, hub.schemas, observed); !slices.Equal(got, always) {
			t.Errorf("%s: want %v, got %v", name, always, got)
		}
		for _, field := range hub.lookedUp(t, imp, observed) {
			if required[field] {
				continue
			}
			gk := field.Kind.Namespaced()
			schemas := maps.Clone(hub.schemas)
			schemas[gk] = reflection.Schema{Version: "v1beta1", JSONSchemaProps: without(schemas[gk].JSONSchemaProps,
				append([]string{"status", "atProvider"}, strings.Split(field.Path, ".")...))}
			isKnown := func(name string) bool { return slices.Contains(always, name) }
			want := slices.DeleteFunc([]string{field.Kind.Kind + "." + field.Path}, isKnown)
			if field.Path == "azureActiveDirectoryRoleBasedAccessControl.managed" { // Only older providers have it.
				want = nil
			}
			if got := slices.DeleteFunc(missing(t, imp, schemas, prune(observed, field)), isKnown); !slices.Equal(got, want) {
				t.Errorf("%s: without %v: want %v, got %v", name, field, want, got)
			}
		}
	}
}

// missing are the fields that are lossy because the installed provider does not have them.
func missing(t *testing.T, imp reflection.Import, schemas reflection.Schemas, observed reflection.Observed) (fields []string) {
	t.Helper()
	facts, err := reflection.Read(imp, schemas, observed)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range facts.Lossy {
		if l.Reason == "The installed provider does not observe the field" {
			fields = append(fields, l.Field)
		}
	}
	return fields
}

// prune is what is observed without a field, as an API server stores it whose schema does not have it.
func prune(observed reflection.Observed, field observedField) reflection.Observed {
	var remove func(value any, path []string)
	remove = func(value any, path []string) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				remove(item, path)
			}
		case map[string]any:
			if len(path) == 1 {
				delete(v, path[0])
			} else {
				remove(v[path[0]], path[1:])
			}
		}
	}
	out := observed
	out.Resources = nil
	for _, mr := range observed.Resources {
		if mr = mr.DeepCopy(); field.Kind.Is(mr.GroupVersionKind().GroupKind()) {
			remove(mr.Object["status"], append([]string{"atProvider"}, strings.Split(field.Path, ".")...))
		}
		out.Resources = append(out.Resources, mr)
	}
	return out
}

// without is a schema without the field at a path.
func without(s *apiextensionsv1.JSONSchemaProps, path []string) *apiextensionsv1.JSONSchemaProps {
	out := *s
	if s.Type == "array" {
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: without(s.Items.Schema, path)}
		return &out
	}
	out.Properties = maps.Clone(s.Properties)
	if field, found := s.Properties[path[0]]; found && len(path) > 1 {
		out.Properties[path[0]] = *without(&field, path[1:])
	} else {
		delete(out.Properties, path[0])
	}
	return &out
}

// lookedUp are the fields that an import reads in what is observed, whether they are there or not.
func (h installed) lookedUp(t *testing.T, imp reflection.Import, observed reflection.Observed) []observedField {
	t.Helper()
	found := map[observedField]bool{}
	err := reflection.RecordLookups(imp, h.schemas, observed, func(field string) {
		// "<kind>/<name>.<path>", or without the name.
		object, path, _ := strings.Cut(field, ".")
		name, _, _ := strings.Cut(object, "/")
		kinds := reflection.Kinds(imp.Cloud)
		found[observedField{kinds[slices.IndexFunc(kinds, func(k reflection.Kind) bool { return k.Kind == name })], path}] = true
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Keys(found))
}

var lookup = regexp.MustCompile(`\b\w+\.(?:text|texts|flag|is|number|block|blocks|identifier|identifiers|pairs|labels|time|get|renamed|parseTaints)\("(\w+(?:", "\w+)?)"`)

// checkLookups checks that the fixtures led to every look-up that there is in the sources.
func checkLookups(t *testing.T, names map[string]bool) {
	t.Helper()
	sources, err := filepath.Glob("*_observe.go")
	if err != nil || len(sources) != 3 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range lookup.FindAllSubmatch(content, -1) {
			if !slices.ContainsFunc(strings.Split(string(call[1]), `", "`), func(name string) bool { return names[name] }) {
				t.Errorf("%s: no fixture leads to %s", source, call[0])
			}
		}
	}
}
