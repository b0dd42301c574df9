// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// state is what the fleet contains, by name.
type state struct {
	hubClaims, hubSecrets byName
	// composites are the names of the composite resources. A composite resource that no claim names belongs to no claim:
	// Crossplane loses one that it is creating when its claim is deleted, see pkg/controllers/agent, unbound.go.
	composites sets.Set[string]
	workloads  map[*cluster]workloadState
}

type workloadState struct{ claims, secrets byName }

type byName map[string]*unstructured.Unstructured

// Problems returns how the fleet differs from what was requested. It is empty at the end, but not while work is still
// in progress. The load must have been stopped.
func (l *Load) Problems(ctx context.Context) ([]string, error) {
	s, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	problems := append(l.history.problems(), l.hubProblems(s)...)
	for _, c := range l.clusters {
		for _, p := range c.problems(s) {
			problems = append(problems, "cluster "+c.name+": "+p)
		}
	}
	slices.Sort(problems)
	return problems, nil
}

func (l *Load) read(ctx context.Context) (state, error) {
	s := state{composites: sets.New[string](), workloads: map[*cluster]workloadState{}}
	var err error
	if s.hubClaims, err = list(l.hub.Resource(claims).Namespace(l.target).List(ctx, metav1.ListOptions{LabelSelector: incarnationLabel})); err != nil {
		return s, err
	}
	if s.hubSecrets, err = list(l.hub.Resource(secrets).Namespace(l.target).List(ctx, metav1.ListOptions{})); err != nil {
		return s, err
	}
	xrs, err := l.hub.Resource(composites).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	for i := range xrs.Items {
		s.composites.Insert(xrs.Items[i].GetName())
	}
	for _, c := range l.clusters {
		var w workloadState
		if w.claims, err = list(c.client.Resource(claims).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: incarnationLabel})); err != nil {
			return s, err
		}
		copies := metav1.ListOptions{LabelSelector: fleetv1alpha1.ManagedByLabel}
		if w.secrets, err = list(c.client.Resource(secrets).Namespace(namespace).List(ctx, copies)); err != nil {
			return s, err
		}
		s.workloads[c] = w
	}
	return s, nil
}

func list(from *unstructured.UnstructuredList, err error) (byName, error) {
	if err != nil {
		return nil, err
	}
	out := make(byName, len(from.Items))
	for i := range from.Items {
		out[from.Items[i].GetName()] = &from.Items[i]
	}
	return out, nil
}

// hubProblems are about claims that are in the hub and should not be, and about claims there without a composite
// resource.
func (l *Load) hubProblems(s state) []string {
	var problems []string
	for name, claim := range s.hubClaims {
		if l.holder(claim) == nil {
			problems = append(problems, fmt.Sprintf("the hub has %q, for which no cluster asks: UID %s, incarnation %q, created at %s, "+
				"deleted at %s, with the finalizers %q and the annotations %q", name, claim.GetUID(), claim.GetLabels()[incarnationLabel],
				claim.GetCreationTimestamp(), claim.GetDeletionTimestamp(), claim.GetFinalizers(), claim.GetAnnotations()))
		}
		if composite, _, _ := unstructured.NestedString(claim.Object, "spec", "resourceRef", "name"); !s.composites.Has(composite) {
			problems = append(problems, fmt.Sprintf("%q has no composite resource", name))
		}
	}
	return problems
}

// holder is the cluster to whose claim an object of the hub belongs; nil if it belongs to none.
func (l *Load) holder(claim *unstructured.Unstructured) *cluster {
	for _, c := range l.clusters {
		if c.holds(claim) {
			return c
		}
	}
	return nil
}

// holds is whether an object of the hub belongs to this cluster's claim, in the incarnation that is wanted now.
func (c *cluster) holds(inHub *unstructured.Unstructured) bool {
	w, ok := c.wanted[inHub.GetName()]
	return ok && inHub.GetAnnotations()[fleetv1alpha1.SourceUIDAnnotation] == string(c.uid) &&
		inHub.GetAnnotations()[fleetv1alpha1.SourceNamespaceAnnotation] == namespace &&
		inHub.GetLabels()[incarnationLabel] == w.incarnation && inHub.GetDeletionTimestamp() == nil
}

func (c *cluster) problems(s state) []string {
	var problems []string
	found := s.workloads[c]
	for name, claim := range found.claims {
		if _, ok := c.wanted[name]; !ok {
			problems = append(problems, fmt.Sprintf("%q was deleted and is still there, with the finalizers %q", name, claim.GetFinalizers()))
		}
	}
	copies := map[string]bool{}
	for name, w := range c.wanted {
		claim, inHub := found.claims[name], s.hubClaims[name]
		switch {
		case claim == nil:
			problems = append(problems, fmt.Sprintf("%q is lost", name))
		case inHub == nil:
			problems = append(problems, fmt.Sprintf("%q is not in the hub", name))
		case !c.holds(inHub):
			if got := synced(claim); got != "False/Conflict" {
				problems = append(problems, fmt.Sprintf("%q belongs to another cluster, and says %s", name, got))
			}
		default:
			copies[secretName(name)] = true
			problems = append(problems, heldProblems(name, w, claim, inHub, found.secrets[secretName(name)], s.hubSecrets[secretName(name)])...)
		}
	}
	for name := range found.secrets {
		if !copies[name] && c.chooses(name) {
			problems = append(problems, fmt.Sprintf("the Secret %q belongs to no claim that is provisioned", name))
		}
	}
	return problems
}

// heldProblems are about a claim that holds its name in the hub: the object with that name belongs to it.
func heldProblems(name string, w wanted, claim, inHub, secret, hubSecret *unstructured.Unstructured) []string {
	var problems []string
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%q ", name)+fmt.Sprintf(format, args...))
	}
	for where, obj := range map[string]*unstructured.Unstructured{"in its cluster": claim, "in the hub": inHub} {
		version, _, _ := unstructured.NestedString(obj.Object, "spec", "version")
		storage, _, _ := unstructured.NestedInt64(obj.Object, "spec", "storageGB")
		if version != w.version || storage != w.storageGB {
			add("asks for %s, %d GB %s, not for %s, %d GB", version, storage, where, w.version, w.storageGB)
		}
	}
	if got := synced(claim); got != "True/Synced" {
		add("says %s", got)
	}
	switch {
	case hubSecret == nil:
		add("has no connection Secret in the hub")
	case secret == nil:
		add("has no connection Secret in its cluster")
	case !metav1.IsControlledBy(secret, claim):
		add("does not control its connection Secret")
	case !equality.Semantic.DeepEqual(secret.Object["data"], hubSecret.Object["data"]):
		add("has another connection Secret in its cluster than in the hub")
	}
	return problems
}

// synced is what the agent reports about a claim: "True/Synced".
func synced(claim *unstructured.Unstructured) string {
	if c, ok := condition.Find(claim, fleetv1alpha1.ConditionAgentSynced); ok {
		return fmt.Sprintf("%s/%s", c.Status, c.Reason)
	}
	return "nothing"
}
