// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// handleNamespace queues the claims affected by a change of a namespace of a workload cluster.
func (a *agent) handleNamespace(w *index.Cluster, e kindwatch.Event) {
	switch {
	case e.Type == kindwatch.StateChanged:
		a.enqueueClaims(w)
	case e.Initial || e.Type == kindwatch.Deleted:
		// The end of the initial list requeues the claims; a deleted namespace has none.
	case e.Old != nil && maps.Equal(e.Old.GetAnnotations(), e.Object.GetAnnotations()):
	default:
		a.enqueueNamespace(w, e.Object.GetName())
	}
}

// enqueueNamespace queues the claims in a namespace of a workload cluster.
func (a *agent) enqueueNamespace(w *index.Cluster, namespace string) {
	for _, kind := range w.ClaimKinds() {
		claims, err := w.Watcher.ListNamespace(kind, namespace)
		if err != nil {
			continue
		}
		for _, c := range claims {
			a.hub.Requirements.Add(w.Request(kind, c.Key))
		}
	}
}

// hubNamespaceHandler requeues the claims affected by a change of a hub namespace: those waiting for it and, if its
// labels changed, those of every cluster whose class selects namespaces by label.
func (a *agent) hubNamespaceHandler(classes client.Reader) handler.TypedEventHandler[*metav1.PartialObjectMetadata, multicluster.ObjectRequest] {
	type queue = workqueue.TypedRateLimitingInterface[multicluster.ObjectRequest]
	changed := func(ctx context.Context, name string) {
		a.hub.Requirements.Add(a.hub.WaitingFor(index.HubNamespace(name))...)
		a.enqueueSelecting(ctx, classes)
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, multicluster.ObjectRequest]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], _ queue) {
			// Nothing is reconciled before the first list.
			if !e.IsInInitialList {
				changed(ctx, e.Object.Name)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], _ queue) {
			if !equality.Semantic.DeepEqual(e.ObjectOld.Labels, e.ObjectNew.Labels) {
				changed(ctx, e.ObjectNew.Name)
			}
		},
	}
}

// enqueueSelecting queues the claims of the clusters whose class selects target namespaces by label, or of all clusters
// if the classes cannot be read. Clusters of other classes cost nothing.
func (a *agent) enqueueSelecting(ctx context.Context, classes client.Reader) {
	list := &fleetv1alpha1.EnrollmentClassList{}
	if err := classes.List(ctx, list); err != nil {
		for _, w := range a.workloads.All() {
			a.enqueueClaims(w)
		}
		return
	}
	for _, class := range list.Items {
		if allowed := class.Spec.Agent.AllowedTargetNamespaces; allowed == nil || allowed.Selector == nil {
			continue
		}
		for _, name := range a.fleet.InClass(class.Name) {
			a.enqueueClaimsIn(name)
		}
	}
}

func (a *agent) enqueueClaimsIn(name mcr.ClusterName) {
	if w, ok := a.workloads.Get(name); ok {
		a.enqueueClaims(w)
	}
}

// handleAwaitedSecret queues the claims that a Secret was blocking when it is deleted, or when it is missing from the
// watch's initial list.
func (a *agent) handleAwaitedSecret(w *index.Cluster, e kindwatch.Event) {
	key, ok := w.AwaitedSecret(e.Kind)
	gone := e.Type == kindwatch.Deleted
	if e.Type == kindwatch.StateChanged && e.State == kindwatch.StateSynced {
		_, err := w.Watcher.Metadata(e.Kind, key)
		gone = apierrors.IsNotFound(err)
	}
	if ok && gone {
		a.hub.Requirements.Add(w.Awaiting(key)...)
	}
}

// enqueueCluster queues everything in a cluster.
func (a *agent) enqueueCluster(name mcr.ClusterName) {
	w, ok := a.workloads.Get(name)
	if !ok {
		return
	}
	a.hub.EnqueueDefinitions(w)
	a.enqueueClaims(w)
}

func (a *agent) enqueueClaims(w *index.Cluster) {
	for _, kind := range w.ClaimKinds() {
		a.hub.EnqueueKind(w, kind.GroupResource(), a.hub.Requirements.AddInitial)
	}
}

// handleWorkload handles the events of a workload cluster's watcher.
func (a *agent) handleWorkload(w *index.Cluster, e kindwatch.Event) {
	if !a.workloads.Current(w.Name, w) {
		return
	}
	switch e.Kind {
	case index.OwnedCRDKind:
		if e.Type == kindwatch.StateChanged {
			a.hub.EnqueueDefinitions(w)
			return
		}
		w.Watcher.Retry(schema.ParseGroupResource(e.Object.GetName()))
		a.hub.Definitions.Add(index.DefinitionRequest(w.Name, e.Object.GetName()))
	case index.NamespaceKind:
		a.handleNamespace(w, e)
	case index.OwnedSecretKind:
		if e.Type == kindwatch.StateChanged {
			a.enqueueClaims(w)
			return
		}
		a.handleOwnedSecret(w, e)
	default:
		if _, awaited := w.AwaitedSecret(e.Kind); awaited {
			a.handleAwaitedSecret(w, e)
			return
		}
		if e.Type == kindwatch.StateChanged {
			a.hub.Definitions.Add(index.DefinitionRequest(w.Name, e.Kind.GroupResource().String()))
			return
		}
		a.handleClaim(w, e)
	}
}

// handleClaim queues a claim of a workload cluster that changed.
func (a *agent) handleClaim(w *index.Cluster, e kindwatch.Event) {
	if crd := e.Kind.GroupResource().String(); !e.Initial && e.Type != kindwatch.Updated && w.Definition(crd).Unoffered {
		a.hub.Definitions.Add(index.DefinitionRequest(w.Name, crd))
	}
	req := w.Request(e.Kind, client.ObjectKeyFromObject(e.Object))
	if vanished(e, w.Owner()) {
		a.requirements.vanish(req, e.Object)
	}
	switch {
	case e.SelfInduced:
		// The reconcile that wrote this has already continued with it.
	case e.Initial:
		a.hub.Requirements.AddInitial(req)
	case onlyRequestsReconcile(e):
		a.hub.Requirements.AddAfter(a.requirements.noteReconcileRequest(req), req)
	default:
		a.requirements.claimChanged(req, e)
	}
}

// handleOwnedSecret queues the claim whose connection Secret changed in a workload cluster.
func (a *agent) handleOwnedSecret(w *index.Cluster, e kindwatch.Event) {
	key := types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}
	w.TrackCopy(e)
	if e.Type == kindwatch.Deleted {
		w.ForgetSecret(key)
	}
	if e.Initial || e.Type != kindwatch.Deleted && w.CopyState(key).Version == e.Object.GetResourceVersion() {
		return
	}
	owner := metav1.GetControllerOfNoCopy(e.Object)
	if owner == nil && e.Old != nil {
		owner = metav1.GetControllerOfNoCopy(e.Old)
	}
	if owner == nil {
		return
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return
	}
	for _, kind := range w.ClaimKinds() {
		if kind.Group == gv.Group && kind.Kind == owner.Kind {
			a.hub.Requirements.Add(multicluster.ObjectRequest{
				ClusterName: w.Name, Kind: kind,
				NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: owner.Name},
			})
		}
	}
}
