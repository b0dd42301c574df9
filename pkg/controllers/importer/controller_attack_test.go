// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

var (
	clusterKind     = clusterv1.GroupVersion.WithKind("Cluster")
	machinePoolKind = clusterv1.GroupVersion.WithKind("MachinePool")
	observedCluster = reflection.EKSCluster.Namespaced().WithVersion("v1beta1")
)

func (h *hubOfOneImport) create(o client.Object) {
	h.t.Helper()
	if err := h.c.Create(h.t.Context(), o); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hubOfOneImport) object(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	h.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	if err := h.c.Get(h.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		h.t.Fatal(err)
	}
	return o
}

func (h *hubOfOneImport) change(o *unstructured.Unstructured, value any, path ...string) {
	h.t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		h.t.Fatal(err)
	}
	update := h.c.Update
	if path[0] == "status" {
		update = func(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
			return h.c.Status().Update(ctx, o)
		}
	}
	if err := update(h.t.Context(), o); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hubOfOneImport) unimport() {
	h.t.Helper()
	if err := h.c.Delete(h.t.Context(), h.get()); err != nil {
		h.t.Fatal(err)
	}
	h.settle()
}

func (h *hubOfOneImport) isGone() {
	h.t.Helper()
	if err := h.c.Get(h.t.Context(), h.key, &fleetv1alpha1.ClusterImport{}); !apierrors.IsNotFound(err) {
		h.t.Errorf("want the import gone, got %v", err)
	}
}

// copied is a copy of an object, with its labels, as a restore into another namespace makes one.
func copied(o *unstructured.Unstructured, namespace, name string) *unstructured.Unstructured {
	out := o.DeepCopy()
	out.SetNamespace(namespace)
	out.SetName(name)
	out.SetUID(schemaUID(out) + "-copy")
	out.SetResourceVersion("")
	out.SetOwnerReferences(nil)
	return out
}

// TestCopyOfAReflectionIsNotDeleted: the attacker copies a reflected Cluster with its labels, and makes the copy refer
// to the infrastructure of a real cluster, which Cluster API core would delete with it.
func TestCopyOfAReflectionIsNotDeleted(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	original := h.object(clusterKind, "customers", "shop")
	copies := []*unstructured.Unstructured{copied(original, "restored", "shop"), copied(original, "customers", "real")}
	infra := importertest.ReflectedKinds(reflection.EKS)[1]
	copies = append(copies, copied(h.object(infra, "customers", "shop"), "customers", "real"))
	for _, pool := range h.list(machinePoolKind) {
		foreign := copied(&pool, "restored", pool.GetName())
		copies = append(copies, foreign)
	}
	for _, c := range copies {
		h.create(c)
	}
	h.settle() // Prunes what is not wanted.
	h.unimport()
	h.isGone()
	for _, c := range copies {
		now := h.object(c.GroupVersionKind(), c.GetNamespace(), c.GetName())
		if now.GetResourceVersion() != c.GetResourceVersion() {
			t.Errorf("the copy %s %s/%s was touched", c.GetKind(), c.GetNamespace(), c.GetName())
		}
	}
	if left := h.made(); len(left) != len(copies) {
		t.Errorf("un-import leaves of its own: %v", left)
	}
	recorder, _ := h.r.recorder.(*events.FakeRecorder)
	for reported := false; !reported; {
		select {
		case event := <-recorder.Events:
			reported = strings.Contains(event, "has the label of this import")
			if strings.Contains(event, "restored") {
				t.Errorf("another namespace is named: %s", event)
			}
		default:
			t.Fatal("no event tells of the copies")
		}
	}
}

// TestClusterThatRefersToRealInfrastructureIsNotDeleted: the attacker points the reflected Cluster, or a reflected
// MachinePool, at infrastructure of a real cluster before un-import.
func TestClusterThatRefersToRealInfrastructureIsNotDeleted(t *testing.T) {
	kinds := importertest.ReflectedKinds(reflection.EKS)
	foreignKind := map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerCluster", "name": "shop"}
	for name, tc := range map[string]struct {
		reason string
		gvk    schema.GroupVersionKind
		ref    map[string]any
		path   []string
	}{
		"Infrastructure": {
			"Core deletes the infrastructure with the Cluster.", clusterKind,
			map[string]any{"apiGroup": kinds[1].Group, "kind": kinds[1].Kind, "name": "real"}, []string{"spec", "infrastructureRef"},
		},
		"ControlPlane": {
			"Core deletes the control plane with the Cluster.", clusterKind,
			map[string]any{"apiGroup": kinds[2].Group, "kind": kinds[2].Kind, "name": "real"}, []string{"spec", "controlPlaneRef"},
		},
		"KindOfOthers": {"The import makes no such kind.", clusterKind, foreignKind, []string{"spec", "infrastructureRef"}},
		"Pool": {
			"Core deletes the pool with the MachinePool.", machinePoolKind,
			map[string]any{"apiGroup": kinds[3].Group, "kind": kinds[3].Kind, "name": "real"}, []string{"spec", "template", "spec", "infrastructureRef"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, anImport())
			h.settle()
			for _, gvk := range kinds[1:4] {
				foreign := &unstructured.Unstructured{}
				foreign.SetGroupVersionKind(gvk)
				foreign.SetNamespace("customers")
				foreign.SetName("real")
				h.create(foreign)
			}
			o := h.list(tc.gvk)[0]
			h.change(&o, tc.ref, tc.path...)
			h.unimport()
			h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonReflectionRefused)
			if now := h.object(tc.gvk, o.GetNamespace(), o.GetName()); !now.GetDeletionTimestamp().IsZero() {
				t.Errorf("%s\n%s %q is deleted", tc.reason, o.GetKind(), o.GetName())
			}
		})
	}
}

// TestObservationOfAnotherNamespaceIsNotBelieved: a tenant creates a managed resource with the label and the name that
// an import of another namespace would give it, and with a provider configuration of the tenant's, so that the import's
// credentials are sent to the tenant's host.
func TestObservationOfAnotherNamespaceIsNotBelieved(t *testing.T) {
	imp := anImport()
	planted := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"managementPolicies": []any{"Observe"}, "forProvider": map[string]any{"region": "eu-central-1"}},
		"status": map[string]any{
			"atProvider": map[string]any{
				"arn": "arn:aws:eks:eu-central-1:123456789012:cluster/prod", "id": "prod", "endpoint": "https://tenant.example.org", "version": "1.31", "status": "ACTIVE",
			},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Synced", "status": "True"}},
		},
	}}
	planted.SetGroupVersionKind(observedCluster)
	planted.SetNamespace("tenant")
	planted.SetName(reflection.ManagedName(ownership.WantedImport(imp), reflection.EKSCluster, true, "prod"))
	planted.SetLabels(ownership.Marks(imp))
	planted.SetAnnotations(map[string]string{reflection.ExternalNameAnnotation: "prod"})
	h := newHub(t, imp, planted)
	h.settle()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	if got := h.get().Status.Observed.Endpoint; got != "cluster.example.org:443" {
		t.Errorf("want the endpoint of the import's own observation, got %q", got)
	}
	h.unimport()
	h.isGone()
	h.object(observedCluster, "tenant", planted.GetName())
}

// TestClusterIsNotExchanged: the attacker deletes the cluster that was imported, or changes the account, so that
// another cluster of the same name is observed, which would be sent the first one's credentials.
func TestClusterIsNotExchanged(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	before := h.object(clusterKind, "customers", "shop")
	id := h.get().Status.Observed.ID
	m := h.list(observedCluster)[0]
	h.change(&m, "arn:aws:eks:eu-central-1:999999999999:cluster/prod", "status", "atProvider", "arn")
	m = *h.object(observedCluster, m.GetNamespace(), m.GetName())
	h.change(&m, "https://other.example.org", "status", "atProvider", "endpoint")
	h.settle()
	h.want(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedIdentity)
	if now := h.object(clusterKind, "customers", "shop"); now.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the other cluster is reflected")
	}
	if got := h.get().Status.Observed; got.ID != id || got.Endpoint != "cluster.example.org:443" {
		t.Errorf("want the first cluster still shown, got %+v", got)
	}
}

// TestRecreatedClusterIsAnotherOne: the owner deletes the cluster that was imported and creates one with its name and
// ID, which would be sent the first one's credentials. Another format of the same time is no other cluster.
func TestRecreatedClusterIsAnotherOne(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	show := func(at any) {
		m := h.list(observedCluster)[0]
		h.change(&m, at, "status", "atProvider", "createdAt")
		h.settle()
	}
	for _, same := range []any{"2024-05-03T09:12:44Z", "2024-05-03 09:12:44.117 +0000 UTC", "2024-05-03T11:12:44+02:00", "yesterday", ""} {
		show(same)
		h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	}
	before := h.object(clusterKind, "customers", "shop")
	show("2026-11-29T08:00:00Z")
	h.want(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedIdentity)
	if now := h.object(clusterKind, "customers", "shop"); now.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the other cluster is reflected")
	}
	show("2024-05-03T09:12:44Z")
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
}

func TestJudgeIdentity(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		beforeID string
		before   time.Time
		id       string
		created  time.Time
		want     bool
		keeps    time.Time
	}{
		"First":         {id: "a", created: at, want: true, keeps: at},
		"Same":          {beforeID: "a", before: at, id: "a", created: at, want: true, keeps: at},
		"OtherCase":     {beforeID: "a", before: at, id: "A", created: at, want: true, keeps: at},
		"Rounded":       {beforeID: "a", before: at, id: "a", created: at.Add(999 * time.Millisecond), want: true, keeps: at.Add(999 * time.Millisecond)},
		"NothingKnown":  {beforeID: "a", id: "a", want: true},
		"NotSaidNow":    {beforeID: "a", before: at, id: "a", want: true, keeps: at},
		"SaidNow":       {beforeID: "a", id: "a", created: at, want: true, keeps: at},
		"AnotherID":     {beforeID: "a", before: at, id: "b", created: at},
		"CreatedAgain":  {beforeID: "a", before: at, id: "a", created: at.Add(time.Hour)},
		"CreatedBefore": {beforeID: "a", before: at, id: "a", created: at.Add(-time.Hour)},
	} {
		observed := &fleetv1alpha1.ObservedCluster{ID: tc.beforeID}
		if !tc.before.IsZero() {
			observed.CreationTime = &metav1.Time{Time: tc.before}
		}
		facts := &reflection.Facts{ID: tc.id, Created: tc.created}
		if err := judgeIdentity(observed, facts); isProblem(err) == tc.want || tc.want && !facts.Created.Equal(tc.keeps) {
			t.Errorf("%s: want the same cluster: %v, created at %s; got %v, %s", name, tc.want, tc.keeps, err, facts.Created)
		}
	}
}

// TestNoSecondProviderConfigIsUsed: the hub serves kinds of two generations, which have two different provider
// configurations of the same name. Only one of them is checked against what the import may use.
func TestNoSecondProviderConfigIsUsed(t *testing.T) {
	all := func(gk func(reflection.Kind) schema.GroupKind) reflection.Schemas {
		served := reflection.Schemas{}
		for _, kind := range reflection.Kinds(reflection.EKS) {
			served[gk(kind)] = reflection.Schema{Version: "v1beta1"}
		}
		return served
	}
	mixed := all(reflection.Kind.Namespaced)
	delete(mixed, reflection.EKSClusterAuth.Namespaced())
	mixed[reflection.EKSClusterAuth.Legacy()] = reflection.Schema{Version: "v1beta1"}
	both := all(reflection.Kind.Namespaced)
	both[reflection.EKSClusterAuth.Legacy()] = reflection.Schema{Version: "v1beta1"}
	for name, tc := range map[string]struct {
		reason string
		served reflection.Schemas
		stops  bool
	}{
		"Namespaced": {"One generation.", all(reflection.Kind.Namespaced), false},
		"Legacy":     {"One generation.", all(reflection.Kind.Legacy), false},
		"Both":       {"The namespaced one is used where both are served.", both, false},
		"Mixed":      {"ClusterAuth would use the administrator's cluster-scoped configuration.", mixed, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := newHub(t, anImport()).r.oneGeneration(t.Context(), reflection.EKS, tc.served)
			if (err != nil) != tc.stops {
				t.Errorf("%s\nwant a stop: %v, got %v", tc.reason, tc.stops, err)
			}
		})
	}
}

// TestNodesOfAMachinePoolAreKept: another user unpaused a reflected MachinePool for a while, so that Cluster API core
// found its Nodes. It would delete them with the MachinePool.
func TestNodesOfAMachinePoolAreKept(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		h := newHub(t, anImport())
		h.settle()
		pool := h.list(machinePoolKind)[0]
		pool.SetFinalizers([]string{"machinepool.cluster.x-k8s.io"})
		if err := h.c.Update(t.Context(), &pool); err != nil {
			t.Fatal(err)
		}
		pool = *h.object(machinePoolKind, pool.GetNamespace(), pool.GetName())
		h.change(&pool, []any{map[string]any{"name": "node-1"}}, "status", "nodeRefs")
		if deleted {
			if err := h.c.Delete(t.Context(), &pool); err != nil {
				t.Fatal(err)
			}
		}
		h.unimport()
		h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonReflectionRefused)
		now := h.object(machinePoolKind, pool.GetNamespace(), pool.GetName())
		if _, paused := now.GetAnnotations()[clusterv1.PausedAnnotation]; !paused || now.GetDeletionTimestamp().IsZero() == deleted {
			t.Errorf("deleted before: %v: core may delete the Nodes: %v", deleted, now.Object["metadata"])
		}
	}
}

// TestUnimportWaitsUntilTheKubeconfigIsGone: a foreign finalizer keeps the Secret, with which Cluster API core could
// act on the cluster while the rest is removed.
func TestUnimportWaitsUntilTheKubeconfigIsGone(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "customers", Name: "shop-kubeconfig", Labels: ownership.Marks(h.get()), Finalizers: []string{"example.org/kept"},
	}}
	secret.UID = "secret-uid"
	h.create(secret)
	h.unimport()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonUnimporting)
	for _, gvk := range importertest.ReflectedKinds(reflection.EKS) {
		for _, o := range h.list(gvk) {
			if !o.GetDeletionTimestamp().IsZero() {
				t.Errorf("%s %q is deleted while the credentials are there", gvk.Kind, o.GetName())
			}
		}
		if len(h.list(gvk)) == 0 {
			t.Errorf("%s is gone while the credentials are there", gvk.Kind)
		}
	}
	if err := h.c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	secret.Finalizers = nil
	if err := h.c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	h.settle()
	h.isGone()
}

// TestTakenPoolNameHoldsNothingUp: the attacker has an object of the name that a reflected node pool would get, so that
// the cluster is not reflected at all.
func TestTakenPoolNameHoldsNothingUp(t *testing.T) {
	for _, gvk := range []schema.GroupVersionKind{importertest.ReflectedKinds(reflection.EKS)[3], machinePoolKind} {
		foreign := &unstructured.Unstructured{}
		foreign.SetGroupVersionKind(gvk)
		foreign.SetNamespace("customers")
		foreign.SetName(reflection.PoolName("shop", "blue"))
		h := newHub(t, anImport(), foreign)
		before := h.object(gvk, "customers", foreign.GetName())
		h.settle()
		h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
		h.object(machinePoolKind, "customers", reflection.PoolName("shop", "green"))
		if now := h.object(gvk, "customers", foreign.GetName()); now.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("the foreign %s was changed", gvk.Kind)
		}
		if len(h.list(machinePoolKind)) > 2 || gvk != machinePoolKind && len(h.list(machinePoolKind)) != 1 {
			t.Errorf("a MachinePool refers to the foreign %s", gvk.Kind)
		}
		reported := slices.ContainsFunc(h.get().Status.Lossy, func(l fleetv1alpha1.LossyField) bool {
			return l.Kind == gvk.Kind && l.Name == foreign.GetName() && l.Observed == "blue"
		})
		if !reported {
			t.Errorf("the status does not report the pool: %+v", h.get().Status.Lossy)
		}
		h.unimport()
		h.isGone()
		h.object(gvk, "customers", foreign.GetName())
	}
}

// TestKubeconfigIsKeptWhileTheReflectionStops: the attacker takes the name of an object of the reflection, and waits
// for the token of the connection to expire.
func TestKubeconfigIsKeptWhileTheReflectionStops(t *testing.T) {
	imp := anImport()
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &fleetv1alpha1.SecretKeyReference{Name: "token", Key: "token"},
	}
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "customers", Name: "token", Labels: map[string]string{fleetv1alpha1.ImportCredentialsLabel: "true"},
	}, Data: map[string][]byte{"token": []byte("the-next-token")}}
	written := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "customers", Name: "shop-kubeconfig", UID: "secret-uid", Labels: ownership.Marks(imp)},
		Data:       map[string][]byte{kubeconfigKey: []byte("the kubeconfig with the last token")},
	}
	foreign := &unstructured.Unstructured{}
	foreign.SetGroupVersionKind(importertest.ReflectedKinds(reflection.EKS)[1])
	foreign.SetNamespace("customers")
	foreign.SetName("shop")
	h := newHub(t, imp, token, written, foreign)
	h.settle()
	h.want(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken)
	h.want(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
	if err := h.c.Get(t.Context(), client.ObjectKeyFromObject(written), written); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(written.Data[kubeconfigKey]), "the-next-token") {
		t.Error("the kubeconfig holds the last token still")
	}
}
