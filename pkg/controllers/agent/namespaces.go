// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// hubNamespaceLabels returns the labels of a hub namespace if they decide whether it is allowed. A missing namespace
// has none.
func (r *requirementReconciler) hubNamespaceLabels(
	ctx context.Context, allowed *fleetv1alpha1.AllowedNamespaces, name string,
) (map[string]string, error) {
	if allowed == nil || allowed.Selector == nil {
		return nil, nil
	}
	namespace := index.NamespaceMetadata()
	err := r.classes.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot get the metadata of namespace %q of the hub: %w", name, err)
	}
	return namespace.Labels, nil
}

// namespacesUnknown returns why a workload cluster's namespaces are not known, or nil if they soon will be. Nothing is
// pushed meanwhile: an unseen annotation would send a claim to the wrong place.
func namespacesUnknown(w *index.Cluster) *condition.Error {
	switch state, message := w.Watcher.State(index.NamespaceKind); state {
	case kindwatch.StateForbidden:
		return &condition.Error{Reason: fleetv1alpha1.ReasonWorkloadForbidden, Message: "Masthead lacks the right to list and watch namespaces in this cluster."}
	case kindwatch.StateTooLarge, kindwatch.StateStale:
		return &condition.Error{Reason: fleetv1alpha1.ReasonWorkloadRejected, Message: "The target namespace of claims is unknown: " + message + "."}
	case kindwatch.StateSynced, kindwatch.StateSyncing, kindwatch.StateNotServed, kindwatch.StateUnwatched:
	}
	return nil
}

// chosenNamespaces returns the hub namespaces that a workload cluster has chosen, now or when the claim was pushed. The
// class has to allow them.
func chosenNamespaces(p *plan.Pairing, claim *unstructured.Unstructured) []string {
	var names []string
	if name, ok := p.Annotations[fleetv1alpha1.TargetNamespaceAnnotation]; ok {
		names = append(names, name)
	} else if p.Agent.MatchNamespaces {
		names = append(names, p.Namespace)
	}
	if was, ok := ownership.GetRecord(claim); ok && !slices.Contains(names, was.Namespace) {
		names = append(names, was.Namespace)
	}
	return names
}

// pair determines the claim's target in the hub, or why it is unknown. If it will be known soon, nothing is reported:
// the event makes a new request.
func (r *requirementReconciler) pair(ctx context.Context, s *downstream.Scope) error {
	if state, _ := s.Workload.Watcher.State(index.NamespaceKind); s.NamespaceObject == nil || state == kindwatch.StateStale {
		s.Unpaired = namespacesUnknown(s.Workload)
		return nil
	}
	p := &plan.Pairing{Class: s.ClassName, Agent: s.Class.Spec.Agent, Namespace: s.Namespace, Protected: r.protected, Annotations: s.NamespaceObject.GetAnnotations()}
	allowed := p.Agent.AllowedTargetNamespaces
	labels := map[string]map[string]string{}
	for _, name := range chosenNamespaces(p, s.Claim) {
		var err error
		if labels[name], err = r.hubNamespaceLabels(ctx, allowed, name); err != nil {
			return err
		}
	}
	p.Allowed = func(target string) bool { return connection.Allows(allowed, target, labels[target]) }
	s.Pairing = p
	target, untargeted := p.Target()
	if s.Untargeted = untargeted; untargeted == nil {
		at := s.PlaceIn(target)
		s.Target = &at
	}
	return nil
}
