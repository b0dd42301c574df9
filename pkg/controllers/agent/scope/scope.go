// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/answer"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/metrics"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
)

// Scope is what the steps of one reconcile share.
type Scope struct {
	plan.Facts

	// Workload is the cluster of the claim.
	Workload *view.Cluster

	// Changes are those that this reconcile has seen, and AwaitsStatus is whether it let the hub's wait; see package
	// metrics.
	Changes      metrics.Changes
	AwaitsStatus bool

	// Wrote are the states of the claim and of its object that this reconcile wrote on condition that they were as it had
	// looked at them; see ledger.Reported.
	Wrote []ledger.Version

	// RecordTried is whether this reconcile has asked the workload cluster to record the claim's object.
	RecordTried bool

	// InTheWay are the Secrets of others that were found where the claim's should be.
	InTheWay []types.NamespacedName
}

// Writes is who counts writes.
type Writes interface {
	// Wrote counts a write to a cluster.
	Wrote(cluster mcr.ClusterName, what string)
}

// PatchClaim writes the metadata of a claim, on condition that the claim has not changed meanwhile: a merge patch
// replaces the list of finalizers as a whole, and those of others must not get lost.
func PatchClaim(ctx context.Context, s *Scope, claim *unstructured.Unstructured, what string, m Writes) error {
	patch, err := propagation.MetadataPatch(s.Claim, claim)
	if err != nil {
		return err
	}
	claim = propagation.Shell(s.Claim)
	if err := s.Workload.Client.Patch(ctx, claim, patch, s.Workload.FieldOwner()); err != nil {
		return answer.MarkUnanswered(err)
	}
	m.Wrote(s.ClusterName, what)
	if claim.GetUID() != s.Claim.GetUID() || claim.GetNamespace() != s.Namespace || claim.GetName() != s.Name {
		return fmt.Errorf("cluster %q answered with another object than %s", s.ClusterName, s.NamespacedName)
	}
	s.ObserveClaim(claim)
	s.Claim = claim
	return nil
}

// ObserveClaim takes in what the workload cluster answered to a write of the claim, before its watch reports it. The
// write was conditional on the state that was looked at: what else is in the answer, nobody has looked at.
func (s *Scope) ObserveClaim(claim *unstructured.Unstructured) {
	if claim.GetUID() == s.Claim.GetUID() { // A cluster may answer with another object.
		s.Wrote = append(s.Wrote, ledger.VersionOf(claim))
	}
	s.Workload.Watcher.Observe(s.Kind, s.NamespacedName, claim)
}

// Intent is what the hub shall hold for the claim, given what it holds now, which may be nothing.
func (s *Scope) Intent(ctx context.Context, place ownership.Place, hub *unstructured.Unstructured) *unstructured.Unstructured {
	var excluded []string
	if s.Class != nil {
		excluded = s.Class.Spec.Agent.ExcludedMetadata
	}
	return propagation.Intent(s.Claim, place, s.Marks(ctx, hub), s.Form, excluded...)
}

// Marks are the annotations that Masthead sets on the claim's object in the hub: which source it comes from, where that
// is, and with whose rights it was created. Who takes an object over from another cluster, or adopts it, counts as its
// creator.
func (s *Scope) Marks(ctx context.Context, hub *unstructured.Unstructured) map[string]string {
	marks := s.Us.Annotations()
	maps.Copy(marks, s.Home.Annotations())
	creator := ""
	if hub != nil && ownership.ResidenceOf(hub).Cluster == s.Home.Cluster {
		creator = hub.GetAnnotations()[fleetv1alpha1.CreatedByAnnotation]
	}
	if access, err := hubaccess.AccessOf(ctx); creator == "" && err == nil {
		creator = access.Key.Mark()
	}
	if creator != "" {
		marks[fleetv1alpha1.CreatedByAnnotation] = creator
	}
	return marks
}
