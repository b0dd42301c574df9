// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// observedField is a field of status.atProvider.
type observedField struct {
	Kind reflection.Kind
	Path string
}

// notEverywhere are the fields that not both groups of a kind have, and which has them: the cluster-scoped one, of the
// provider that is pinned, or the namespaced one, of the newest.
var notEverywhere = map[observedField]string{
	{reflection.AKSCluster, "automaticChannelUpgrade"}:                            "cluster-scoped",
	{reflection.AKSCluster, "automaticUpgradeChannel"}:                            "namespaced",
	{reflection.AKSCluster, "azureActiveDirectoryRoleBasedAccessControl.managed"}: "cluster-scoped",
	{reflection.AKSCluster, "defaultNodePool.autoScalingEnabled"}:                 "namespaced",
	{reflection.AKSCluster, "defaultNodePool.enableAutoScaling"}:                  "cluster-scoped",
	{reflection.AKSCluster, "defaultNodePool.nodeTaints"}:                         "cluster-scoped",
	{reflection.AKSCluster, "networkProfile.ebpfDataPlane"}:                       "cluster-scoped",
	{reflection.AKSNodePool, "autoScalingEnabled"}:                                "namespaced",
	{reflection.AKSNodePool, "enableAutoScaling"}:                                 "cluster-scoped",
	// The default pool is read like the others.
	{reflection.AKSCluster, "defaultNodePool.mode"}:         "none",
	{reflection.AKSCluster, "defaultNodePool.osType"}:       "none",
	{reflection.AKSCluster, "defaultNodePool.priority"}:     "none",
	{reflection.AKSCluster, "defaultNodePool.spotMaxPrice"}: "none",

	{reflection.GKECluster, "controlPlaneEndpointsConfig"}:                            "namespaced",
	{reflection.GKECluster, "controlPlaneEndpointsConfig.dnsEndpointConfig"}:          "namespaced",
	{reflection.GKECluster, "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint"}: "namespaced",
}

// TestProvidersHaveWhatIsRead: a field that no provider has is never observed, and nothing else would say so.
func TestProvidersHaveWhatIsRead(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	got, names := map[observedField]string{}, map[string]bool{}
	for _, name := range layouts.Names() {
		f := loadFixture(t, name)
		imp := importOfAll(f)
		observed, _ := hub.observe(t, imp, served(imp.Cloud, true, false), f, true)
		err := reflection.RecordLookups(imp, observed, func(field string) {
			// "<kind>/<name>.<path>", or without the name.
			object, path, _ := strings.Cut(field, ".")
			kindName, _, _ := strings.Cut(object, "/")
			kinds := reflection.Kinds(imp.Cloud)
			kind := kinds[slices.IndexFunc(kinds, func(k reflection.Kind) bool { return k.Kind == kindName })]
			steps := append([]string{"status", "atProvider"}, strings.Split(path, ".")...)
			names[steps[len(steps)-1]] = true
			legacy := hasField(hub.schemas[kind.Legacy()].JSONSchemaProps, steps)
			namespaced := hasField(hub.schemas[kind.Namespaced()].JSONSchemaProps, steps)
			switch {
			case !legacy && !namespaced:
				got[observedField{kind, path}] = "none"
			case !namespaced:
				got[observedField{kind, path}] = "cluster-scoped"
			case !legacy:
				got[observedField{kind, path}] = "namespaced"
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(notEverywhere, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	checkLookups(t, names)
}

var lookup = regexp.MustCompile(`\b\w+\.(?:text|texts|flag|is|number|block|blocks|identifier|identifiers|pairs|labels|time|get)\("(\w+)"`)

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
			if !names[string(call[1])] {
				t.Errorf("%s: no fixture leads to %s", source, call[0])
			}
		}
	}
}
