// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

var namespaceGVK = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"} //nolint:gochecknoglobals // A constant.

// namespaceKind are the namespaces of a workload cluster, of which only what pairs them with the hub is kept.
var namespaceKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
	GroupVersionKind: namespaceGVK,
	Resource:         "namespaces",
	ClusterScoped:    true,
	MetadataOnly:     true,
	OnlyAnnotations: strings.Join([]string{
		fleetv1alpha1.TargetNamespaceAnnotation,
		fleetv1alpha1.CredentialsSecretNameAnnotation,
		fleetv1alpha1.OnTargetChangeAnnotation,
	}, ","),
}

// hubNamespace is the place in the hub at which a claim waits for a namespace. Namespaces of the hub are not watched by the
// hub's watcher: the manager's cache has them already, for the classes' allowedNamespaces.
func hubNamespace(name string) hubKey {
	return hubKey{kind: kindwatch.Kind{GroupVersionKind: namespaceGVK, Resource: "namespaces"}, NamespacedName: types.NamespacedName{Name: name}}
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return m
}

// pairingOf collects what decides about the target of a claim, or says why that is not known. The outcome is silent if
// something that will be known in a moment is missing: its coming makes a new request.
func (r *requirementReconciler) pairingOf(ctx context.Context, s *scope) (*pairing, *outcome, error) {
	p := &pairing{class: s.className, agent: s.class.Spec.Agent, namespace: s.Namespace, protected: r.protected}
	if state, _ := s.workload.watcher.State(namespaceKind); s.namespace == nil || state == kindwatch.StateStale {
		problem := namespacesUnknown(s.workload)
		return nil, &outcome{silent: problem == nil, problem: problem}, nil
	}
	p.annotations = s.namespace.GetAnnotations()
	var labels map[string]string
	var err error
	if name, ok := p.annotations[fleetv1alpha1.TargetNamespaceAnnotation]; ok || p.agent.MatchNamespaces {
		if !ok {
			name = s.Namespace
		}
		if labels, err = r.hubNamespaceLabels(ctx, p.agent.AllowedTargetNamespaces, name); err != nil {
			return nil, nil, err
		}
	}
	p.allowed = func(target string) bool {
		return connection.Allows(p.agent.AllowedTargetNamespaces, target, labels)
	}
	return p, nil, nil
}

// hubNamespaceLabels returns the labels of a namespace of the hub if they decide whether it is allowed. One that does not
// exist has none.
func (r *requirementReconciler) hubNamespaceLabels(
	ctx context.Context, allowed *fleetv1alpha1.AllowedNamespaces, name string,
) (map[string]string, error) {
	if allowed == nil || allowed.Selector == nil {
		return nil, nil
	}
	namespace := namespaceMetadata()
	err := r.classes.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot get the metadata of namespace %q of the hub: %w", name, err)
	}
	return namespace.Labels, nil
}

// namespacesUnknown is why the namespaces of a workload cluster are not known, or nil if they will be in a moment. Nothing is
// pushed meanwhile: an annotation that was not seen would send a claim to the wrong place.
func namespacesUnknown(w *workload) *problem {
	switch state, message := w.watcher.State(namespaceKind); state {
	case kindwatch.StateForbidden:
		return &problem{reason: ReasonWorkloadForbidden, message: "Masthead lacks the right to list and watch namespaces in this cluster."}
	case kindwatch.StateTooLarge, kindwatch.StateStale:
		return &problem{reason: ReasonWorkloadRejected, message: "It is not known where claims go: " + message + "."}
	case kindwatch.StateSynced, kindwatch.StateSyncing, kindwatch.StateNotServed, kindwatch.StateUnwatched:
	}
	return nil
}

// target returns the namespace in the hub to which the claim goes.
func (r *requirementReconciler) target(s *scope) (string, *problem) {
	if s.class == nil {
		return "", classNotFound(s.className)
	}
	if !s.offered {
		return "", &problem{
			reason:  ReasonKindNotOffered,
			message: fmt.Sprintf("The hub does not offer %s to this cluster.", s.Kind.GroupResource()),
		}
	}
	return s.pairing.target()
}

// awaitNamespace makes a claim whose target namespace is missing wait for it.
func (r *requirementReconciler) awaitNamespace(s *scope, target string, o *outcome) {
	if o != nil && o.problem != nil && o.problem.reason == ReasonTargetNamespaceMissing {
		r.hub.wait(hubNamespace(target), s.Request)
	}
}

// handleNamespace finds the claims for which a change of a namespace of a workload cluster matters.
func (a *agent) handleNamespace(w *workload, e kindwatch.Event) {
	switch {
	case e.Type == kindwatch.StateChanged:
		a.enqueueClaims(w)
	case e.Initial || e.Type == kindwatch.Deleted:
		// The end of the list is the reason to look, and what is gone has no claims any more.
	case e.Old != nil && maps.Equal(e.Old.GetAnnotations(), e.Object.GetAnnotations()):
	default:
		a.enqueueNamespace(w, e.Object.GetName())
	}
}

// enqueueNamespace queues the claims in a namespace of a workload cluster.
func (a *agent) enqueueNamespace(w *workload, namespace string) {
	for _, kind := range w.claimKinds() {
		claims, err := w.watcher.List(kind)
		if err != nil {
			continue
		}
		for _, c := range claims {
			if c.GetNamespace() == namespace {
				a.hub.requirements.add(w.request(kind, c))
			}
		}
	}
}

// hubNamespaceHandler looks at claims again for which a change of a namespace of the hub matters: those that wait for it, and
// if its labels have changed, those of every cluster whose class selects namespaces by their labels.
func (a *agent) hubNamespaceHandler(classes client.Reader) handler.TypedEventHandler[*metav1.PartialObjectMetadata, Request] {
	type queue = workqueue.TypedRateLimitingInterface[Request]
	changed := func(ctx context.Context, name string) {
		a.hub.requirements.add(a.hub.waitingFor(hubNamespace(name))...)
		a.enqueueSelecting(ctx, classes)
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], _ queue) {
			// Nobody can have looked before the first list.
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

// enqueueSelecting queues the claims of the clusters whose class allows target namespaces by their labels; those of all clusters if the
// classes cannot be read. Clusters of other classes cost nothing.
func (a *agent) enqueueSelecting(ctx context.Context, classes client.Reader) {
	list := &fleetv1alpha1.EnrollmentClassList{}
	if err := classes.List(ctx, list); err != nil {
		for _, w := range a.workloads.all() {
			a.enqueueClaims(w)
		}
		return
	}
	for _, class := range list.Items {
		if allowed := class.Spec.Agent.AllowedTargetNamespaces; allowed == nil || allowed.Selector == nil {
			continue
		}
		for _, name := range a.fleet.InClass(class.Name) {
			a.enqueueClaimsOf(name)
		}
	}
}

func (a *agent) enqueueClaimsOf(name mcr.ClusterName) {
	if w, ok := a.workloads.get(name); ok {
		a.enqueueClaims(w)
	}
}
