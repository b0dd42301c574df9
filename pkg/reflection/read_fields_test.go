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

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// observedField is a field of status.atProvider.
type observedField struct {
	Kind reflection.Kind
	Path string
}

// optional are the fields that are read, although one of the groups does not have them: the cluster-scoped one, of the
// provider that is pinned, or the namespaced one, of the newest.
var optional = map[observedField]string{
	{reflection.AKSCluster, "azureActiveDirectoryRoleBasedAccessControl.managed"}: "namespaced",
	{reflection.AKSCluster, "defaultNodePool.nodeTaints"}:                         "namespaced",

	{reflection.GKECluster, "controlPlaneEndpointsConfig"}:                            "cluster-scoped",
	{reflection.GKECluster, "controlPlaneEndpointsConfig.dnsEndpointConfig"}:          "cluster-scoped",
	{reflection.GKECluster, "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint"}: "cluster-scoped",
}

// TestProvidersHaveWhatIsRead: of a provider, no field is read that its version does not have.
func TestProvidersHaveWhatIsRead(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	got, names := map[observedField]string{}, map[string]bool{}
	for group, namespaced := range map[string]bool{"namespaced": true, "cluster-scoped": false} {
		for _, name := range layouts.Names() {
			f := loadFixture(t, name)
			imp := importOfAll(f)
			observed, _ := hub.observe(t, imp, served(imp.Cloud, namespaced, !namespaced), f, true)
			for _, field := range hub.lookedUp(t, imp, observed) {
				steps := strings.Split(field.Path, ".")
				names[steps[len(steps)-1]] = true
				gk := field.Kind.Legacy()
				if namespaced {
					gk = field.Kind.Namespaced()
				}
				if !hasField(hub.schemas[gk].JSONSchemaProps, append([]string{"status", "atProvider"}, steps...)) {
					got[field] = strings.TrimPrefix(got[field], group) + group
				}
			}
		}
	}
	if diff := cmp.Diff(optional, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
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
		if facts, err := reflection.Read(imp, hub.schemas, observed); err != nil || slices.ContainsFunc(facts.Lossy, isMissing) {
			t.Errorf("%s: nothing is missing: got %v, %v", name, facts.Lossy, err)
		}
		for _, field := range hub.lookedUp(t, imp, observed) {
			if required[field] {
				continue
			}
			gk := field.Kind.Namespaced()
			schemas := maps.Clone(hub.schemas)
			schemas[gk] = reflection.Schema{Version: "v1beta1", JSONSchemaProps: without(schemas[gk].JSONSchemaProps,
				append([]string{"status", "atProvider"}, strings.Split(field.Path, ".")...))}
			facts, err := reflection.Read(imp, schemas, prune(observed, field))
			if err != nil {
				t.Fatal(field, err)
			}
			var got []string
			for _, l := range slices.DeleteFunc(facts.Lossy, func(l reflection.Lossy) bool { return !isMissing(l) }) {
				got = append(got, l.Field)
			}
			want := []string{field.Kind.Kind + "." + field.Path}
			if optional[field] == "namespaced" {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: without %v: want %v, got %v", name, field, want, got)
			}
		}
	}
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

func isMissing(l reflection.Lossy) bool {
	return l.Reason == "The installed provider does not observe the field"
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
