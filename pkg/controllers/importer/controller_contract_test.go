// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/pkg/controllers/importer"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// aheadClock is the real clock, but for what a test adds to it.
type aheadClock struct {
	clock.RealClock

	ahead atomic.Int64
}

func (c *aheadClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *aheadClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestUpgradeOfClusterAPIProviders upgrades the CRDs of the providers under living imports, to the contract v1beta2.
func TestUpgradeOfClusterAPIProviders(t *testing.T) {
	hub, err := importertest.Start(t.Context(), importertest.ModernKinds())
	if err != nil {
		t.Fatal(err)
	}
	ahead := &aheadClock{}
	hub.Recorder = record
	u := &upgrade{world: &world{Hub: hub, clock: ahead}, ahead: ahead}
	if err := u.grant(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.stopImporter = importertest.RunInBackground(t.Context(), u.runImporter)
	t.Cleanup(func() {
		if err := u.stopImporter(); err != nil {
			t.Error(err)
		}
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})
	hub.Cloud.FailOnMutation(t)
	imports, lives := map[reflection.Cloud]*fleetv1alpha1.ClusterImport{}, map[reflection.Cloud]layoutLife{}
	for cloud, name := range map[reflection.Cloud]string{
		reflection.EKS: "eks-standard", reflection.AKS: "aks-standard", reflection.GKE: "gke-regional",
	} {
		f, err := layouts.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		imports[cloud], lives[cloud] = layoutImport(name, f), newLayoutLife(hub.Cloud, f)
		u.Create(t, imports[cloud])
	}
	for _, imp := range imports {
		u.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	}
	before := map[reflection.Cloud]fleetv1alpha1.ClusterImportStatus{}
	for cloud, imp := range imports {
		before[cloud] = *imp.Status.DeepCopy()
		u.checkVersion(t, imp, 0)
	}

	// Both versions are served.
	for cloud := range imports {
		u.change(t, cloud, func(crd *apiextensionsv1.CustomResourceDefinition) { providercrds.AddVersion(crd, false) })
	}
	u.ahead.ahead.Store(int64(11 * time.Minute))
	for cloud, imp := range imports {
		u.touch(t, imp, lives[cloud])
	}
	for cloud, imp := range imports {
		u.waitForVersion(t, imp, 1)
		if len(imp.Status.Lossy) != len(before[cloud].Lossy) || len(imp.Status.References) != len(before[cloud].References) {
			t.Errorf("%s: before %+v, now %+v", cloud, before[cloud], imp.Status)
		}
		u.checkVersion(t, imp, 1)
	}

	// The older one is not served any more.
	for cloud, imp := range imports {
		u.change(t, cloud, serveNewest)
		u.changes(t, imp, lives[cloud], 1)
	}
	t.Run("OddLabel", func(t *testing.T) { u.oddLabel(t, imports[reflection.AKS], lives[reflection.AKS]) })

	// The next version replaces this one at once.
	for cloud, imp := range imports {
		u.change(t, cloud, func(crd *apiextensionsv1.CustomResourceDefinition) {
			providercrds.AddVersion(crd, false)
			serveNewest(crd)
		})
		if cloud == reflection.AKS {
			u.changes(t, imp, lives[cloud], 2)
		}
	}
	// The import of EKS has not noticed, and that of AKS has.
	for _, cloud := range []reflection.Cloud{reflection.EKS, reflection.AKS} {
		u.unimport(t, imports[cloud])
		if left := u.list(t, imports[cloud], 2); len(left) > 0 {
			t.Errorf("%s: un-import leaves %v", cloud, left)
		}
	}
	u.removeKinds(t, reflection.GKE)
	u.unimport(t, imports[reflection.GKE])
}

// TestKindWhoseVersionIsNewToItsGroup finds the kind of a provider that was installed later than others of its group.
func TestKindWhoseVersionIsNewToItsGroup(t *testing.T) {
	t.Parallel()
	w := modern(t)
	hub, err := client.New(w.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := importer.NewStarts(importer.Options{}).Start(hub)
	if err != nil {
		t.Fatal(err)
	}
	kind := func(name string) schema.GroupKind { return schema.GroupKind{Group: "late.example.org", Kind: name} }
	install := func(name, version string) {
		crd := unstructuredCRD(t, minimalCRD(kind(name), version))
		if err := hub.Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := hub.Delete(context.WithoutCancel(t.Context()), crd); err != nil {
				t.Error(err)
			}
		})
		importertest.Eventually(t, name+" is served", func() (bool, string) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: kind(name).Group, Version: version, Kind: name + "List"})
			other, err := client.New(w.Config, client.Options{}) // Its mapper knows nothing.
			if err == nil {
				err = other.List(t.Context(), list)
			}
			return err == nil, fmt.Sprint(err)
		})
	}
	install("Early", "v1beta2")
	if err := r.FindKind(t.Context(), kind("Early")); err != nil {
		t.Fatal(err)
	}
	install("Late", "v1beta1")
	if _, err := hub.RESTMapper().RESTMapping(kind("Late")); !meta.IsNoMatchError(err) {
		t.Errorf("the mapper finds the kind without help: %v", err)
	}
	if err := r.FindKind(t.Context(), kind("Late")); err != nil {
		t.Error(err)
	}
	if err := r.FindKind(t.Context(), kind("Never")); !importer.IsNotServed(err) {
		t.Errorf("a kind without a CRD: %v", err)
	}
}

func minimalCRD(kind schema.GroupKind, version string) *apiextensionsv1.CustomResourceDefinition {
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(version))
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural.Resource, Kind: kind.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// upgrade is a world whose CRDs change.
type upgrade struct {
	*world

	ahead *aheadClock
}

func serveNewest(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Storage
	}
}

func unstructuredCRD(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return o
}

// change changes the CRDs of a cloud's provider, and waits until the API server has what they serve.
func (u *upgrade) change(t *testing.T, cloud reflection.Cloud, edit func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	crds, err := providercrds.Load(t.Context(), reflection.ProviderKinds(cloud)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range crds {
		o := unstructuredCRD(t, known)
		if err := u.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd); err != nil {
			t.Fatal(err)
		}
		edit(crd)
		if err := u.Client.Update(t.Context(), unstructuredCRD(t, crd)); err != nil {
			t.Fatal(err)
		}
		for _, v := range crd.Spec.Versions {
			importertest.Eventually(t, v.Name+" of "+crd.Name, func() (bool, string) {
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind})
				err := u.fresh(t).List(t.Context(), list)
				return (err == nil) == v.Served, fmt.Sprint(err)
			})
		}
	}
	// A search for a kind that no provider has, as the canary's without CAPA, makes the mapper drop what has left the
	// versions that it knows of the group.
	for _, crd := range crds {
		missing := schema.GroupKind{Group: crd.Spec.Group, Kind: "NoSuchKind"}
		if _, err := u.mapper.Load().(meta.RESTMapper).RESTMapping(missing); !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
	}
}

// removeKinds removes the CRDs of a cloud's provider.
func (u *upgrade) removeKinds(t *testing.T, cloud reflection.Cloud) {
	t.Helper()
	crds, err := providercrds.Load(t.Context(), reflection.ProviderKinds(cloud)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		o := unstructuredCRD(t, crd)
		if err := u.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		importertest.Eventually(t, crd.Name+" is gone", func() (bool, string) {
			err := u.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
}

// unimport deletes an import, and checks that nothing is left of it in Cluster API core and of Crossplane.
func (u *upgrade) unimport(t *testing.T, imp *fleetv1alpha1.ClusterImport) {
	t.Helper()
	if err := u.Client.Delete(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	importertest.Eventually(t, imp.Name+" is gone", func() (bool, string) {
		err := u.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		return apierrors.IsNotFound(err), fmt.Sprint(imp.Status.Conditions)
	})
	kinds := importertest.ReflectedKinds(reflection.Cloud(imp.Spec.Cloud()))
	kinds = kinds[len(kinds)-len(reflection.CoreKinds()):]
	for _, kind := range reflection.Kinds(reflection.Cloud(imp.Spec.Cloud())) {
		kinds = append(kinds, u.ManagedKind(t, kind))
	}
	for _, gvk := range kinds {
		if left := u.ListLabelled(t, imp, gvk); len(left) > 0 {
			t.Errorf("un-import leaves %v", left)
		}
	}
}

// fresh is a client that knows nothing of what the hub has served.
func (u *upgrade) fresh(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(u.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// list lists the objects of the cloud's provider, in a version that is later than that of the beginning.
func (u *upgrade) list(t *testing.T, imp *fleetv1alpha1.ClusterImport, later int) (objects []unstructured.Unstructured) {
	t.Helper()
	cloud := reflection.Cloud(imp.Spec.Cloud())
	for _, gvk := range importertest.ReflectedKinds(cloud)[:len(reflection.ProviderKinds(cloud))] {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupKind().WithVersion(laterVersion(gvk.Version, later)))
		if err := u.fresh(t).List(t.Context(), list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(imp.UID)}); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, list.Items...)
	}
	return objects
}

func laterVersion(version string, later int) string {
	number := 0
	_, _ = fmt.Sscanf(version, "v1beta%d", &number)
	return fmt.Sprintf("v1beta%d", number+later)
}

// checkVersion checks that everything has been written in a version, and only in that, and that it says so.
func (u *upgrade) checkVersion(t *testing.T, imp *fleetv1alpha1.ClusterImport, later int) {
	t.Helper()
	objects := u.list(t, imp, later)
	if pools := len(objects) - len(reflection.ProviderKinds(reflection.Cloud(imp.Spec.Cloud()))) + 1; pools < 1 {
		t.Errorf("only %d objects are reflected", len(objects))
	}
	for _, o := range objects {
		for _, entry := range o.GetManagedFields() {
			if entry.Manager == fleetv1alpha1.ImportFieldManager && entry.APIVersion != o.GetAPIVersion() {
				t.Errorf("%s: fields are managed in %s, want %s: %v", o.GetKind(), entry.APIVersion, o.GetAPIVersion(), entry)
			}
		}
		if version, found, _ := unstructured.NestedString(o.Object, "spec", "identityRef", "apiVersion"); found && version != o.GetAPIVersion() {
			t.Errorf("%s refers to an identity in %s", o.GetKind(), version)
		}
		_, hasStatus := o.Object["status"]
		initialization, _, _ := unstructured.NestedMap(o.Object, "status", "initialization")
		ready, hasReady, _ := unstructured.NestedBool(o.Object, "status", "ready")
		if hasStatus && (later == 0 && !ready || later > 0 && (len(initialization) != 1 || hasReady)) {
			t.Errorf("%s: status %v", o.GetKind(), o.Object["status"])
		}
		named := slices.ContainsFunc(imp.Status.References, func(ref fleetv1alpha1.ImportReference) bool {
			return ref.APIVersion == o.GetAPIVersion() && ref.Kind == o.GetKind() && ref.Name == o.GetName()
		})
		if !named {
			t.Errorf("the status does not name %s %s %q: %v", o.GetAPIVersion(), o.GetKind(), o.GetName(), imp.Status.References)
		}
		if _, paused := o.GetAnnotations()["cluster.x-k8s.io/paused"]; !paused && !strings.HasSuffix(o.GetKind(), "Identity") {
			t.Errorf("%s is not paused", o.GetKind())
		}
		o.SetLabels(map[string]string{})
		if err := u.fresh(t).Update(t.Context(), &o, client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("%s: the policies do not concern %s: %v", o.GetKind(), o.GetAPIVersion(), err)
		}
	}
}

func (u *upgrade) waitForVersion(t *testing.T, imp *fleetv1alpha1.ClusterImport, later int) {
	t.Helper()
	cloud := reflection.Cloud(imp.Spec.Cloud())
	kinds := importertest.ReflectedKinds(cloud)[:len(reflection.ProviderKinds(cloud))]
	importertest.Eventually(t, "the status names the versions", func() (bool, string) {
		if err := u.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
			return false, err.Error()
		}
		for _, gvk := range kinds {
			for _, ref := range imp.Status.References {
				if ref.Kind == gvk.Kind && ref.APIVersion != gvk.Group+"/"+laterVersion(gvk.Version, later) {
					return false, fmt.Sprint(imp.Status.References, imp.Status.Conditions)
				}
			}
		}
		return true, ""
	})
	u.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
}

// changes alters the cluster in the cloud, and checks that its reflection follows in a version.
func (u *upgrade) changes(t *testing.T, imp *fleetv1alpha1.ClusterImport, l layoutLife, later int) {
	t.Helper()
	version := l.upgrade()
	pool := l.removePool()
	importertest.Eventually(t, "the reflection follows", func() (bool, string) {
		u.touch(t, imp, l)
		seen, pools := "", []string{}
		for _, o := range u.list(t, imp, later) {
			for _, field := range []string{"version", "controlPlaneVersion"} {
				if now, found, _ := unstructured.NestedString(o.Object, "spec", field); found && strings.HasSuffix(o.GetKind(), "ControlPlane") {
					seen = strings.TrimPrefix(now, "v")
				}
			}
			pools = append(pools, o.GetName())
		}
		gone := pool == "" || !slices.Contains(pools, reflection.PoolName(imp.Name, pool))
		return seen == version && gone, seen + " " + fmt.Sprint(pools)
	})
	u.waitForVersion(t, imp, later)
	u.checkVersion(t, imp, later)
}

// oddLabel: the labels of a CRD name a version that is not served, or none. Nothing is written until they do.
func (u *upgrade) oddLabel(t *testing.T, imp *fleetv1alpha1.ClusterImport, l layoutLife) {
	t.Helper()
	before := u.list(t, imp, 1)
	for _, named := range []string{"", "v1beta1", "v9"} {
		label := func(version func(crd *apiextensionsv1.CustomResourceDefinition) string) {
			u.change(t, reflection.AKS, func(crd *apiextensionsv1.CustomResourceDefinition) {
				if crd.Spec.Names.Kind == "AzureManagedControlPlane" {
					crd.Labels["cluster.x-k8s.io/v1beta2"] = version(crd)
				}
			})
			u.ahead.ahead.Add(int64(11 * time.Minute))
			u.touch(t, imp, l)
		}
		label(func(*apiextensionsv1.CustomResourceDefinition) string { return named })
		u.WaitForReason(t, imp, fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsMissing)
		for i, now := range u.list(t, imp, 1) {
			if now.GetResourceVersion() != before[i].GetResourceVersion() {
				t.Errorf("%q: %s was written", named, now.GetKind())
			}
		}
		label(func(crd *apiextensionsv1.CustomResourceDefinition) string {
			return crd.Spec.Versions[len(crd.Spec.Versions)-1].Name
		})
		u.WaitForReason(t, imp, fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonPreflightPassed)
	}
}
