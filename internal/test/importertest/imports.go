// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// Eventually waits until a check passes.
func Eventually(tb testing.TB, what string, check func() (bool, string)) {
	tb.Helper()
	last := ""
	if err := testenv.Poll(tb.Context(), testenv.Patience, func(context.Context) (bool, error) {
		var ok bool
		ok, last = check()
		return ok, nil
	}); err != nil {
		tb.Fatalf("%s: %v: %s", what, err, last)
	}
}

// WaitForReason waits until a condition of an import has a reason, for its newest generation.
func (h *Hub) WaitForReason(tb testing.TB, imp *fleetv1alpha1.ClusterImport, conditionType, reason string) {
	tb.Helper()
	Eventually(tb, conditionType+" "+reason, func() (bool, string) {
		if err := h.Client.Get(tb.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
			return false, err.Error()
		}
		c := meta.FindStatusCondition(imp.Status.Conditions, conditionType)
		return c != nil && c.Reason == reason && imp.Status.ObservedGeneration == imp.Generation, fmt.Sprint(imp.Status.Conditions)
	})
}

// CreateAPI gives an imported cluster the API server of the hub, with credentials that have a ClusterRole.
func (h *Hub) CreateAPI(tb testing.TB, name, clusterRole string) fakecloud.API {
	tb.Helper()
	api, err := fakecloud.ServiceAccountAPI(tb.Context(), h.Config, "imported-"+name, clusterRole)
	if err != nil {
		tb.Fatal(err)
	}
	return api
}

// AddEKS adds a cluster to the cloud. Its name consists of hexadecimal digits, because the identifiers of its network
// do.
func (h *Hub) AddEKS(tb testing.TB, name string, pools ...string) {
	tb.Helper()
	h.AddEKSWithRole(tb, name, Reader, pools...)
}

// AddEKSWithRole adds a cluster whose credentials have a ClusterRole.
func (h *Hub) AddEKSWithRole(tb testing.TB, name, clusterRole string, pools ...string) {
	tb.Helper()
	cluster := fakecloud.EKS{Region: Region, Name: name, API: h.CreateAPI(tb, name, clusterRole), Subnets: []fakecloud.Subnet{
		{ID: "subnet-0a1b2c3d", Zone: Region + "a", CIDR: "10.20.0.0/20", Public: true},
		{ID: "subnet-1a1b2c3d", Zone: Region + "b", CIDR: "10.20.16.0/20"},
	}}
	for _, p := range pools {
		cluster.NodeGroups = append(cluster.NodeGroups, fakecloud.NodeGroup{Name: p})
	}
	h.Cloud.AddEKS(cluster)
}

// NewImport is an import, with the configuration "customer", of the cluster that spec names.
func NewImport(name string, spec fleetv1alpha1.ClusterImportSpec) *fleetv1alpha1.ClusterImport {
	spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Name: "customer"}
	return &fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: spec}
}

// NewEKSImport is an import of a cluster that AddEKS added.
func NewEKSImport(name, cluster string, pools ...string) *fleetv1alpha1.ClusterImport {
	return NewImport(name, fleetv1alpha1.ClusterImportSpec{
		EKS: &fleetv1alpha1.EKSImport{Region: Region, ClusterName: cluster, NodeGroupNames: pools},
	})
}

// Create creates an object in the hub.
func (h *Hub) Create(tb testing.TB, o client.Object) {
	tb.Helper()
	if h.Recorder != nil {
		h.Recorder(o)
	}
	if err := h.Client.Create(tb.Context(), o); err != nil {
		tb.Fatal(err)
	}
}

// Unimport deletes an import, and checks that nothing of it is left.
func (h *Hub) Unimport(tb testing.TB, imp *fleetv1alpha1.ClusterImport) {
	tb.Helper()
	if err := h.Client.Delete(tb.Context(), imp); err != nil {
		tb.Fatal(err)
	}
	gone := imp.DeepCopy()
	Eventually(tb, "the import is gone", func() (bool, string) {
		err := h.Client.Get(tb.Context(), client.ObjectKeyFromObject(imp), gone)
		return apierrors.IsNotFound(err), fmt.Sprint(gone.Status.Conditions)
	})
	if left := h.ListMade(tb, imp); len(left) > 0 {
		tb.Errorf("un-import leaves %v", left)
	}
}

// ReflectedKinds are the kinds of Cluster API that a reflection of a cloud has, in the versions that a hub begins with.
func ReflectedKinds(cloud reflection.Cloud) []schema.GroupVersionKind {
	return slices.Clone(reflectedKinds()[cloud])
}

var reflectedKinds = sync.OnceValue(func() map[reflection.Cloud][]schema.GroupVersionKind {
	all := map[reflection.Cloud][]schema.GroupVersionKind{}
	for _, cloud := range reflection.Clouds() {
		kinds := reflection.ReflectedKinds(cloud)
		crds, err := providercrds.Load(context.Background(), kinds...)
		if err != nil {
			panic(err)
		}
		for i, crd := range crds {
			all[cloud] = append(all[cloud], kinds[i].WithVersion(crd.Spec.Versions[0].Name))
		}
	}
	return all
})

// ManagedKind is the kind of managed resource as the hub serves it.
func (h *Hub) ManagedKind(tb testing.TB, kind reflection.Kind) schema.GroupVersionKind {
	tb.Helper()
	for _, gk := range []schema.GroupKind{kind.Namespaced(), kind.Legacy()} {
		mapping, err := h.Client.RESTMapper().RESTMapping(gk)
		if err == nil {
			return mapping.GroupVersionKind
		}
		if !meta.IsNoMatchError(err) {
			tb.Fatal(err)
		}
	}
	tb.Fatalf("the hub does not serve %s", kind)
	return schema.GroupVersionKind{}
}

// ListLabelled are the objects of a kind that bear the label of an import.
func (h *Hub) ListLabelled(tb testing.TB, imp *fleetv1alpha1.ClusterImport, gvk schema.GroupVersionKind) []unstructured.Unstructured {
	tb.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := h.Client.List(tb.Context(), list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(imp.UID)}); err != nil {
		tb.Fatal(err)
	}
	return list.Items
}

// ListMade is everything that bears the label of an import.
func (h *Hub) ListMade(tb testing.TB, imp *fleetv1alpha1.ClusterImport) []string {
	tb.Helper()
	var all []string
	name := reflection.Cloud(imp.Spec.Cloud())
	gvks := append(ReflectedKinds(name), corev1.SchemeGroupVersion.WithKind("Secret"))
	for _, k := range reflection.Kinds(name) {
		gvks = append(gvks, h.ManagedKind(tb, k))
	}
	for _, gvk := range gvks {
		for _, o := range h.ListLabelled(tb, imp, gvk) {
			all = append(all, gvk.Kind+"/"+o.GetName())
		}
	}
	return all
}

// TouchManaged makes the providers reconcile the managed resources of a kind at once.
func (h *Hub) TouchManaged(tb testing.TB, imp *fleetv1alpha1.ClusterImport, kind reflection.Kind) {
	tb.Helper()
	for _, m := range h.ListLabelled(tb, imp, h.ManagedKind(tb, kind)) {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%s"}}}`, m.GetResourceVersion())
		if err := h.Client.Patch(tb.Context(), &m, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			tb.Fatal(err)
		}
	}
}

// CheckPausedAndObserving checks that nothing that an import created can act on its cluster.
func (h *Hub) CheckPausedAndObserving(tb testing.TB, imp *fleetv1alpha1.ClusterImport) {
	tb.Helper()
	name := reflection.Cloud(imp.Spec.Cloud())
	unpaused := []string{"Cluster", "AWSClusterStaticIdentity", "AzureClusterIdentity"}
	for _, gvk := range ReflectedKinds(name) {
		reflected := h.ListLabelled(tb, imp, gvk)
		if len(reflected) == 0 {
			tb.Errorf("no %s is reflected", gvk.Kind)
		}
		for _, o := range reflected {
			_, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]
			if !paused && !slices.Contains(unpaused, gvk.Kind) || len(o.GetFinalizers()) > 0 {
				tb.Errorf("%s %q is not paused, or has a finalizer: %v", gvk.Kind, o.GetName(), o.Object["metadata"])
			}
		}
	}
	for _, kind := range reflection.Kinds(name) {
		for _, o := range h.ListLabelled(tb, imp, h.ManagedKind(tb, kind)) {
			policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
			if kind != reflection.EKSClusterAuth && !slices.Equal(policies, []string{"Observe"}) {
				tb.Errorf("%s %q does not only observe: %v", kind, o.GetName(), policies)
			}
		}
	}
}
