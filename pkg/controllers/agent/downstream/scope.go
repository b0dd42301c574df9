// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// Scope is the state shared by the steps of one reconcile.
type Scope struct {
	plan.Facts

	// Workload is the claim's cluster.
	Workload *index.Cluster

	// Changes are those that this reconcile has seen; AwaitsStatus means that it left the hub's pending.
	Changes      index.Changes
	AwaitsStatus bool

	// Wrote are the states of the claim and of its object that this reconcile wrote conditionally on the state it had
	// read; see index.Reported.
	Wrote []index.Version

	// Altered is a field whose pushed value the hub has replaced, as a mutating webhook does; empty if there is none.
	Altered string

	// BlockingSecrets are the foreign Secrets found in place of the claim's.
	BlockingSecrets []types.NamespacedName

	// answer is the claim in its cluster's last answer to a write of it. The facts stay as the plan saw them.
	answer *unstructured.Unstructured
}

// Latest returns the claim as it is now, as far as known. Writes of the claim are conditional on that state.
func (s *Scope) Latest() *unstructured.Unstructured { return cmp.Or(s.answer, s.Claim) }

// PatchClaim writes the metadata of a claim if the claim has not changed meanwhile: a merge patch replaces the whole
// list of finalizers, and must not lose those of others.
func PatchClaim(ctx context.Context, s *Scope, claim *unstructured.Unstructured, what string, m *Metrics) error {
	patch, err := propagation.MetadataPatch(s.Latest(), claim)
	if err != nil {
		return err
	}
	claim = propagation.Shell(s.Claim)
	if err := s.Workload.Client.Patch(ctx, claim, patch, s.Workload.FieldOwner()); err != nil {
		return hubaccess.MarkUnanswered(err)
	}
	m.Wrote(s.ClusterName, what)
	return s.ObserveClaim(claim)
}

// ObserveClaim is observe for a write that was conditional on the state that was read: otherwise the answer can contain
// unseen changes.
func (s *Scope) ObserveClaim(claim *unstructured.Unstructured) error {
	err := s.observe(claim)
	if err == nil {
		s.Wrote = append(s.Wrote, index.NewVersion(claim))
	}
	return err
}

// observe caches the workload cluster's answer to a write of the claim before the watch reports it.
func (s *Scope) observe(claim *unstructured.Unstructured) error {
	if claim.GetUID() != s.Claim.GetUID() || claim.GetNamespace() != s.Namespace || claim.GetName() != s.Name {
		return fmt.Errorf("cluster %q answered with another object than %s", s.ClusterName, s.NamespacedName)
	}
	s.Workload.Watcher.Observe(s.Kind, s.NamespacedName, claim)
	s.answer = claim
	return nil
}

// Intent returns what the hub should hold for the claim as the cluster has answered, given its current object, which
// may be nil.
func (s *Scope) Intent(ctx context.Context, place ownership.Place, hub *unstructured.Unstructured) *unstructured.Unstructured {
	var excluded []string
	if s.Class != nil {
		excluded = s.Class.Spec.Agent.ExcludedMetadata
	}
	return propagation.Intent(s.Latest(), place, s.Marks(ctx, hub), s.Form, excluded...)
}

// Marks returns the annotations that Masthead sets on the claim's object in the hub: its source, that source's
// residence, the claim's UID, and the identity that created it. Adopting an object, or taking it over from another
// cluster, counts as creating it.
func (s *Scope) Marks(ctx context.Context, hub *unstructured.Unstructured) map[string]string {
	marks := s.Source.Annotations()
	maps.Copy(marks, s.Residence.Annotations())
	marks[fleetv1alpha1.SourceClaimUIDAnnotation] = string(s.Claim.GetUID())
	creator := ""
	if hub != nil && ownership.GetResidence(hub).Cluster == s.Residence.Cluster {
		creator = hub.GetAnnotations()[fleetv1alpha1.CreatedByAnnotation]
	}
	if access, err := hubaccess.FromContext(ctx); creator == "" && err == nil {
		creator = access.Key.Mark()
	}
	if creator != "" {
		marks[fleetv1alpha1.CreatedByAnnotation] = creator
	}
	return marks
}
