// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// layoutImport is an import of everything that a layout has.
func layoutImport(name string, f layouts.Fixture) *fleetv1alpha1.ClusterImport {
	spec := fleetv1alpha1.ClusterImportSpec{Kubeconfig: &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone}}
	switch reflection.Cloud(f.Cloud) {
	case reflection.EKS:
		spec.EKS = &fleetv1alpha1.EKSImport{Region: f.Place, ClusterName: f.ClusterName}
	case reflection.AKS:
		location, _ := f.Resources[0].AtProvider["location"].(string)
		spec.AKS = &fleetv1alpha1.AKSImport{ResourceGroupName: f.Place, ClusterName: f.ClusterName, Location: location}
	case reflection.GKE:
		spec.GKE = &fleetv1alpha1.GKEImport{Location: f.Place, ClusterName: f.ClusterName}
	}
	for _, r := range f.Resources {
		switch r.Kind {
		case "NodeGroup":
			spec.EKS.NodeGroupNames = append(spec.EKS.NodeGroupNames, r.ExternalName)
		case "KubernetesClusterNodePool":
			spec.NodePools.Names = append(spec.NodePools.Names, r.ExternalName)
		}
	}
	return importertest.NewImport(name, spec)
}

// layoutLife is a layout, and what happens to it in its cloud.
type layoutLife struct {
	layouts.Fixture
	// upgrade gives the cluster another version, which it returns, and removePool takes a pool away, if there is one.
	upgrade    func() (version string)
	removePool func() (name string)
	// shownBy are the kinds that show both.
	shownBy []reflection.Kind
}

// newLayoutLife adds a layout to the cloud.
func newLayoutLife(cloud *fakecloud.Cloud, f layouts.Fixture) layoutLife {
	cloud.AddLayout(f)
	l := layoutLife{Fixture: f}
	pools := func(kind string, remove func(name string) bool) func() string {
		return func() string {
			for _, r := range f.Resources {
				if r.Kind == kind && remove(r.ExternalName) {
					return r.ExternalName
				}
			}
			return ""
		}
	}
	switch reflection.Cloud(f.Cloud) {
	case reflection.EKS:
		l.shownBy = []reflection.Kind{reflection.EKSCluster, reflection.EKSNodeGroup}
		l.upgrade = func() string {
			cloud.ChangeEKS(f.Place, f.ClusterName, map[string]any{"version": "1.39"})
			return "1.39"
		}
		l.removePool = pools("NodeGroup", func(name string) bool { return cloud.RemoveNodeGroup(f.Place, f.ClusterName, name) })
	case reflection.AKS:
		l.shownBy = []reflection.Kind{reflection.AKSCluster, reflection.AKSNodePool}
		l.upgrade = func() string {
			cloud.ChangeAKS(fakecloud.AKSClusterID(f.Place, f.ClusterName), map[string]any{"currentKubernetesVersion": "1.39.1"})
			return "1.39.1"
		}
		id, _ := f.Resources[0].AtProvider["id"].(string)
		l.removePool = pools("KubernetesClusterNodePool", func(name string) bool { return cloud.RemoveAKSNodePool(id, name) })
	case reflection.GKE:
		l.shownBy = []reflection.Kind{reflection.GKECluster}
		l.upgrade = func() string {
			const version = "1.39.1-gke.1200003"
			cloud.ChangeGKE("", f.Place, f.ClusterName, map[string]any{"masterVersion": version})
			return version
		}
		l.removePool = func() string {
			listed, _ := f.Resources[0].AtProvider["nodePool"].([]any)
			if autopilot, _ := f.Resources[0].AtProvider["enableAutopilot"].(bool); autopilot || len(listed) == 0 {
				return ""
			}
			first, _ := listed[0].(map[string]any)
			name, _ := first["name"].(string)
			cloud.RemoveGKENodePool("", f.Place, f.ClusterName, name)
			return name
		}
	}
	return l
}

// TestLayouts imports each layout, upgrades it, takes a pool away and gives it back, and un-imports it. With the
// webhooks of Cluster API's providers, which `make webhooks` builds, it records what they refuse and change. Without
// them, there has to be a record of each layout.
func TestLayouts(t *testing.T) {
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	versions, err := importertest.WebhookVersions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	programs := map[reflection.Cloud]string{reflection.EKS: "capa", reflection.AKS: "capz", reflection.GKE: "capg"}
	pinned, err := importertest.PinnedVersions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(testenv.Root(), "docs", "design", "importer-webhooks.md")
	recorded, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(recorded), "\n|Layout|")
	if !found {
		t.Fatalf("%s has no table", page)
	}
	table := "\n|Layout|Provider|Verdict|Objects|Lossy because of its webhooks|\n|---|---|---|---|---|\n"
	for _, name := range layouts.Names() {
		f, err := layouts.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		program := programs[reflection.Cloud(f.Cloud)]
		row := fmt.Sprintf("|%s|%s %s|", name, strings.ToUpper(program), pinned[program])
		if !strings.Contains(string(recorded), "\n"+row+"passes|") && len(versions) == 0 {
			t.Errorf("%s has no record of the layout %s with this version: make webhooks", page, name)
		}
		passed := t.Run(name, func(t *testing.T) {
			// Azure reserves the word, and its provider refuses it in the name of a control plane.
			imp := layoutImport(strings.ReplaceAll(name, "windows", "win"), f)
			objects, lossy := w.liveLayout(t, imp, newLayoutLife(w.Cloud, f))
			table += fmt.Sprintf("%spasses|%d|%s|\n", row, objects, strings.Join(lossy, ", "))
		})
		if !passed {
			table += row + "fails|||\n"
		}
	}
	if len(versions) == 0 {
		return
	}
	if diff := cmp.Diff(pinned, versions); diff != "" {
		t.Errorf("the programs have other versions than the CRDs (-CRDs, +programs):\n%s", diff)
	}
	if diff := cmp.Diff(string(recorded), before+table); diff != "" {
		t.Errorf("the record changed, and was replaced (-was, +is):\n%s", diff)
	}
	if err := os.WriteFile(page, []byte(before+table), 0o644); err != nil {
		t.Fatal(err)
	}
}

// liveLayout runs the import of a layout through its life, and returns how many objects of Cluster API's provider it
// has, and which of their fields are lossy because the hub refuses or changes them.
func (w *world) liveLayout(t *testing.T, imp *fleetv1alpha1.ClusterImport, l layoutLife) (objects int, fields []string) {
	t.Helper()
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	kinds := importertest.ReflectedKinds(reflection.Cloud(l.Cloud))
	machinePool := kinds[len(kinds)-1]
	kinds = kinds[:len(kinds)-2]
	for _, gvk := range kinds {
		objects += len(w.ListLabelled(t, imp, gvk))
	}
	for _, lossy := range imp.Status.Lossy {
		if strings.Contains(lossy.Reason, "denied the request") || strings.Contains(lossy.Reason, "A webhook or another client") {
			fields = append(fields, "`"+lossy.Field+"` of "+lossy.Kind)
		}
	}
	slices.Sort(fields)

	version := l.upgrade()
	w.touch(t, imp, l)
	importertest.Eventually(t, "the control plane is upgraded", func() (bool, string) {
		spec, _ := w.spec(t, imp, kinds[len(kinds)-2], "")
		for _, field := range []string{"version", "controlPlaneVersion"} {
			if now, _ := spec[field].(string); strings.TrimPrefix(now, "v") == version {
				return true, ""
			}
		}
		return false, fmt.Sprint(spec)
	})
	if pool := l.removePool(); pool != "" {
		shown := func(by schema.GroupVersionKind) (bool, string) {
			spec, _ := w.spec(t, imp, by, pool)
			return spec != nil, pool
		}
		w.touch(t, imp, l)
		importertest.Eventually(t, "the pool is gone", func() (bool, string) {
			there, _ := shown(kinds[len(kinds)-1])
			return !there, pool
		})
		w.Cloud.AddLayout(l.Fixture)
		l.upgrade()
		w.touch(t, imp, l)
		importertest.Eventually(t, "the pool is back", func() (bool, string) { return shown(machinePool) })
		w.CheckPausedAndObserving(t, imp)
	}
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	w.Unimport(t, imp)
	return objects, slices.Compact(fields)
}

func (w *world) touch(t *testing.T, imp *fleetv1alpha1.ClusterImport, l layoutLife) {
	t.Helper()
	for _, kind := range l.shownBy {
		w.TouchManaged(t, imp, kind)
	}
}
