// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// observation is what is observed of a cluster.
type observation struct {
	// managed are the managed resources of the import that are there, and wanted those that it wants.
	managed, wanted []*unstructured.Unstructured
	// progress is the condition Observed.
	progress metav1.Condition
	// facts are nil without an observation.
	facts *reflection.Facts
	// mayWrite means that managed resources and reflections may be created and changed.
	mayWrite bool
}

// observe creates the managed resources that the import wants, given what is observed so far.
func (r *Reconciler) observe(ctx context.Context, s *scope, hub capabilities, mayWrite bool) (obs observation, res result, err error) {
	obs.mayWrite = mayWrite
	if obs.managed, err = r.loadManaged(ctx, s, hub); err != nil {
		return obs, res, err
	}
	for _, m := range obs.managed {
		if err := verifyManaged(m); err != nil {
			return obs, res, stop(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedPolicy, "%s; it is not touched any more", err)
		}
	}
	want, err := reflection.Wanted(s.wanted, hub.schemas, r.observed(s, obs.managed))
	if err != nil {
		return obs, res, stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonInvalidSpec, "The spec is invalid: %s", err)
	}
	obs.wanted, res.lossy = want.Resources, want.Lossy
	for _, resource := range obs.wanted {
		if !mayWrite {
			break
		}
		if err := r.ensureManaged(ctx, s, resource); err != nil {
			return obs, res, err
		}
		res.refer(resource)
	}
	obs.progress = judgeManaged(obs.wanted, obs.managed)
	res.set(obs.progress)
	return obs, res, nil
}

// observed is the current state, in the terms of pkg/reflection.
func (r *Reconciler) observed(s *scope, managed []*unstructured.Unstructured) reflection.Observed {
	nodes, known := r.kubeconfigs.clusters.Nodes(s.key(), s.imp.UID)
	return reflection.Observed{Resources: managed, Nodes: nodes, NodesKnown: known}
}

// loadManaged reads the managed resources of the import.
func (r *Reconciler) loadManaged(ctx context.Context, s *scope, hub capabilities) (managed []*unstructured.Unstructured, err error) {
	for _, gvk := range managedKinds(s, hub) {
		list := unstructuredList(gvk)
		if err := r.owned.List(ctx, list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(s.imp.UID)}); err != nil {
			return managed, fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
		}
		own := r.own(s, list.Items)
		for i := range own {
			managed = append(managed, &own[i])
		}
	}
	return managed, nil
}

// ensureManaged creates a managed resource paused, checks the reply's policy, and only then unpauses it.
func (r *Reconciler) ensureManaged(ctx context.Context, s *scope, want *unstructured.Unstructured) error {
	want, err := stamped(want)
	if err != nil {
		return err
	}
	there, err := r.find(ctx, s, want)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if there == nil {
		there = want.DeepCopy()
		annotate(there, reflection.ManagedPausedAnnotation, "true")
		if err := r.tryManaged(ctx, there); err != nil {
			return err
		}
		if err := r.create(ctx, there); err != nil {
			return err
		}
	}
	if err := verifyManaged(there); err != nil {
		return stop(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedPolicy, "%s; it is not touched any more", err)
	}
	if isBorn(there) {
		release := map[string]any{"metadata": map[string]any{"annotations": map[string]any{reflection.ManagedPausedAnnotation: nil}}}
		return r.mergePatch(ctx, there, release)
	}
	_, err = r.update(ctx, there, want)
	return err
}

// tryManaged dry-runs a managed resource, and refuses a result that differs from the request: a CRD that is too old
// drops fields, a webhook may add some.
func (r *Reconciler) tryManaged(ctx context.Context, want *unstructured.Unstructured) error {
	reply := want.DeepCopy()
	err := r.create(ctx, reply, client.DryRunAll)
	if isRefused(err) {
		return stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsTooOld, "The hub refuses a %s: %s",
			want.GetKind(), wordsOf(err))
	}
	if err != nil {
		return err
	}
	if err := verifyManaged(reply); err != nil {
		return stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsTooOld, "The hub changes the created object: %s", err)
	}
	if !apply.Covers(reply.Object["spec"], want.Object["spec"]) {
		return stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsTooOld, "The hub drops fields of a %s", want.GetKind())
	}
	return nil
}

// isBorn reports whether a managed resource is still paused since its creation. An observed one was paused by
// another user.
func isBorn(m *unstructured.Unstructured) bool {
	_, observed, _ := unstructured.NestedMap(m.Object, "status", "atProvider")
	return m.GetAnnotations()[reflection.ManagedPausedAnnotation] == "true" && !observed
}

// verifyManaged returns what is wrong with a managed resource that must only observe.
func verifyManaged(m *unstructured.Unstructured) error {
	policies := ownership.ManagementPolicies(m)
	writesNothing := reflection.WritesNothing(m)
	if writesNothing && (len(policies) == 0 || slices.Equal(policies, []string{"*"})) {
		return nil
	}
	if !slices.Equal(policies, []string{"Observe"}) && !writesNothing {
		return fmt.Errorf("%s %q has managementPolicies other than Observe", m.GetKind(), m.GetName())
	}
	if policy, found, err := unstructured.NestedString(m.Object, "spec", "deletionPolicy"); err != nil || found && policy != "Orphan" {
		return fmt.Errorf("%s %q has a deletionPolicy other than Orphan", m.GetKind(), m.GetName())
	}
	if initial, _, err := unstructured.NestedMap(m.Object, "spec", "initProvider"); err != nil || len(initial) > 0 {
		return fmt.Errorf("%s %q has an initProvider", m.GetKind(), m.GetName())
	}
	return nil
}

// judgeManaged summarizes the progress of the wanted managed resources.
func judgeManaged(want, there []*unstructured.Unstructured) metav1.Condition {
	c := metav1.Condition{
		Type: fleetv1alpha1.ConditionObserved, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonObserved, Message: "The cluster is observed",
	}
	for _, w := range want {
		i := slices.IndexFunc(there, func(m *unstructured.Unstructured) bool { return newObjectKey(m) == newObjectKey(w) })
		if i < 0 {
			return waiting(w)
		}
		if reflection.IsGone(there[i]) && !reflection.IsCluster(w) {
			continue // NodePoolsComplete reports a pool that is gone.
		}
		switch synced, _ := condition.Find(there[i], "Synced"); {
		case synced.Status == metav1.ConditionFalse:
			c.Status, c.Reason = metav1.ConditionFalse, fleetv1alpha1.ReasonProviderError
			c.Message = fmt.Sprintf("%s %q: %s", w.GetKind(), w.GetName(), synced.Message)
			return c
		case synced.Status != metav1.ConditionTrue || !condition.IsTrue(there[i], "Ready"):
			return waiting(w)
		}
	}
	return c
}

func waiting(m *unstructured.Unstructured) metav1.Condition {
	return metav1.Condition{
		Type: fleetv1alpha1.ConditionObserved, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonWaitingForProvider,
		Message: fmt.Sprintf("Waiting for the Crossplane provider to observe %s %q", m.GetKind(), m.GetName()),
	}
}

func annotate(o client.Object, key, value string) {
	annotations := map[string]string{}
	maps.Copy(annotations, o.GetAnnotations())
	annotations[key] = value
	o.SetAnnotations(annotations)
}

// read adds the facts to an observation. Without them, reflections are neither created nor changed.
func (r *Reconciler) read(s *scope, hub capabilities, obs observation) (_ observation, res result, err error) {
	cluster := slices.IndexFunc(obs.managed, reflection.IsCluster)
	if cluster < 0 {
		return obs, res, waitingForFirst(obs.progress)
	}
	facts, err := reflection.Read(s.wanted, hub.schemas, r.observed(s, obs.managed))
	if errors.Is(err, reflection.ErrNotObserved) {
		return obs, res, waitingForFirst(obs.progress)
	}
	if err != nil {
		return obs, res, stop(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedIdentity, "The observed cluster is not reflected: %s", err)
	}
	if s.wanted.Cloud != reflection.EKS { // The others do not say it.
		facts.Created = r.kubeconfigs.clusters.Last(s.key(), s.imp.UID).Created
	}
	if before := s.imp.Status.Observed; before != nil {
		if err := judgeIdentity(before, &facts); err != nil {
			return obs, res, err
		}
	}
	obs.facts = &facts
	if res, err = judgeTags(s.imp.Spec, facts); err == nil {
		res.set(judgePools(facts, s.imp.Spec.NodePools.Mode))
	}
	res.observed = buildObserved(facts)
	if !condition.IsTrue(obs.managed[cluster], "Synced") || !condition.IsTrue(obs.managed[cluster], "Ready") {
		// Earlier observations still count for the kubeconfig. Nothing is created from them.
		obs.mayWrite = false
	}
	return obs, res, err
}

// judgeIdentity stops at another cluster than the one that was imported, and keeps when that was created if nothing
// says it now.
func judgeIdentity(before *fleetv1alpha1.ObservedCluster, f *reflection.Facts) error {
	if before.ID != "" && !strings.EqualFold(before.ID, cut(f.ID, maxID)) {
		return stop(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedIdentity,
			"The observed cluster is not reflected: it is not the one that was imported, whose ID is %q", before.ID)
	}
	if before.CreationTime == nil {
		return nil
	}
	if f.Created.IsZero() {
		f.Created = before.CreationTime.Time
	}
	if before.CreationTime.Sub(f.Created).Abs() > time.Second {
		return stop(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedIdentity,
			"The observed cluster is not reflected: it was created at %s, and the one that was imported at %s",
			f.Created.Format(time.RFC3339), before.CreationTime.UTC().Format(time.RFC3339))
	}
	return nil
}

// judgeTags stops at the tag of a provider of Cluster API, unless the spec acknowledges it. Other tags only say who
// made the cluster, and observing needs no sole right: the policies and noOtherManages keep a Crossplane of this hub
// that changes it away.
func judgeTags(s fleetv1alpha1.ClusterImportSpec, f reflection.Facts) (res result, err error) {
	for _, tag := range f.ClusterAPITags {
		if !slices.Contains(s.AcknowledgedTags, tag) {
			return res, stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonManagedByClusterAPI,
				"The cluster has the tag of a provider of Cluster API; if that manages it no more, name it in acknowledgedTags: %s", tag)
		}
	}
	if tags := slices.Concat(f.ClusterAPITags, f.OwnerTags); len(tags) > 0 {
		res.fail(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonTagsOfOthers,
			"The cluster is imported although it has tags of other managers: %s", joined(tags))
	}
	return res, nil
}

// waitingForFirst is the problem of an import without any observation, given how far observing it is.
func waitingForFirst(progress metav1.Condition) *condition.Error {
	if progress.Status == metav1.ConditionFalse {
		return stop(progress.Type, progress.Reason, "%s", progress.Message)
	}
	return stop(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonWaitingForProvider,
		"Waiting for the Crossplane provider to observe the cluster")
}

// judgePools reports whether all pools are shown.
func judgePools(f reflection.Facts, mode fleetv1alpha1.NodePoolsMode) metav1.Condition {
	c := metav1.Condition{
		Type: fleetv1alpha1.ConditionNodePoolsComplete, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonAllPoolsShown,
		Message: "Every known node pool is shown",
	}
	switch {
	case len(f.PendingNodePools) > 0 || len(f.GoneNodePools) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, fleetv1alpha1.ReasonPoolsMissing
		c.Message = "Node pools that are not shown: " + joined(append(slices.Clone(f.PendingNodePools), f.GoneNodePools...))
	case !f.NodePoolsComplete && mode != fleetv1alpha1.NodePoolsModeList:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fleetv1alpha1.ReasonPoolsUnknown, f.NodePoolsReason
		if c.Message == "" {
			c.Message = "It is unknown which node pools the cluster has"
		}
	}
	return c
}
