// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

const (
	maxReferences = 512
	maxLossy      = 256

	// maxID is how long the ID of a cluster may be in a status, in bytes, and maxMessage the message of a condition.
	maxID      = 512
	maxMessage = 512

	// reportTimeout is how long writing a status may take.
	reportTimeout = 30 * time.Second
)

// report writes the status if it changed, and publishes the change.
func (r *Reconciler) report(ctx context.Context, s *scope, res result) error {
	// A pass that timed out is reported, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	status := buildStatus(s, res, r.clock.Now())
	ready := meta.FindStatusCondition(status.Conditions, fleetv1alpha1.ConditionReady)
	r.states.set(s.key(), metricState(status, !s.imp.DeletionTimestamp.IsZero()))
	if equality.Semantic.DeepEqual(s.imp.Status, status) {
		return nil
	}
	gvk := fleetv1alpha1.GroupVersion.WithKind("ClusterImport")
	if applied, err := apply.Status(ctx, r.hub, gvk, s.imp, &status, fleetv1alpha1.ImportFieldManager); !applied {
		return err
	}
	before := meta.FindStatusCondition(s.imp.Status.Conditions, fleetv1alpha1.ConditionReady)
	if before == nil || before.Status != ready.Status || before.Reason != ready.Reason {
		kind := corev1.EventTypeNormal
		if meta.IsStatusConditionTrue(status.Conditions, fleetv1alpha1.ConditionStalled) {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(s.imp, nil, kind, ready.Reason, "Import", "%s", ready.Message)
	}
	return nil
}

// buildStatus is the status of an import after a pass. Parts that the pass did not reach are unchanged.
func buildStatus(s *scope, res result, now time.Time) fleetv1alpha1.ClusterImportStatus {
	before := s.imp.Status
	status := *before.DeepCopy()
	status.ObservedGeneration = s.imp.Generation
	if res.observed != nil {
		status.Observed = res.observed.DeepCopy()
		if status.Observed.CreationTime == nil && before.Observed != nil {
			status.Observed.CreationTime = before.Observed.CreationTime
		}
	}
	if res.reflected {
		status.Lossy = buildLossy(res.lossy)
		if len(res.references) > 0 {
			status.References = buildReferences(s, res)
		}
	}
	if res.kubeconfig != nil {
		status.Kubeconfig = res.kubeconfig
	}
	status.References = slices.DeleteFunc(status.References, func(ref fleetv1alpha1.ImportReference) bool {
		return slices.Contains(res.removed, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
	})
	if slices.Contains(res.removed, schema.GroupKind{Kind: "Secret"}) {
		status.Kubeconfig = nil
	}
	if res.emptied {
		// The cluster's identity stays: it must not become another cluster.
		status.References, status.Lossy, status.Kubeconfig = nil, nil, nil
	}
	status.Conditions = buildConditions(s, res, now)
	return status
}

// buildConditions are the conditions of an import after a pass, sorted by type. One that the pass did not reach is
// unchanged, and, like one whose status is the same as before, keeps its last transition time.
func buildConditions(s *scope, res result, now time.Time) []metav1.Condition {
	before := s.imp.Status
	conditions := slices.Clone(res.conditions)
	if !res.emptied {
		conditions = withKept(conditions, before.Conditions, res.removed)
	}
	ready := meta.FindStatusCondition(conditions, fleetv1alpha1.ConditionKubeconfigReady)
	refused := ready != nil && ready.Status != metav1.ConditionTrue && slices.Contains(withoutToken(), ready.Reason)
	if refused && res.kubeconfig == nil && expiredKubeconfig(before.Kubeconfig, now) {
		ready.Reason = fleetv1alpha1.ReasonKubeconfigExpired
	}
	conditions = append(slices.DeleteFunc(conditions, func(c metav1.Condition) bool {
		return c.Type == fleetv1alpha1.ConditionReady || c.Type == fleetv1alpha1.ConditionStalled
	}), judge(s, res, conditions)...)
	slices.SortFunc(conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	dated := make([]metav1.Condition, 0, len(conditions))
	for _, c := range conditions {
		c.ObservedGeneration = s.imp.Generation
		c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		if old := meta.FindStatusCondition(before.Conditions, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		dated = append(dated, c)
	}
	return dated
}

// buildReferences are the objects of the import. A pass that ended early does not know all of them: the policies rely
// on the Cluster in the status, which must not go missing because something else was refused.
func buildReferences(s *scope, res result) []fleetv1alpha1.ImportReference {
	all := res.references
	if !res.complete {
		for _, was := range s.imp.Status.References {
			if !slices.Contains(all, was) {
				all = append(all, was)
			}
		}
	}
	return all[:min(len(all), maxReferences)]
}

// withKept adds the previous conditions that the pass did not reach, except summaries, and those that are True of
// what was removed.
func withKept(conditions, before []metav1.Condition, removed []schema.GroupKind) []metav1.Condition {
	dropped := []string{fleetv1alpha1.ConditionReady, fleetv1alpha1.ConditionStalled, fleetv1alpha1.ConditionAlreadyManaged}
	var ended []string
	if slices.Contains(removed, schema.GroupKind{Kind: "Secret"}) {
		ended = append(ended, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ConditionWorkloadAccess)
	}
	if slices.Contains(removed, clusterv1.GroupVersion.WithKind("Cluster").GroupKind()) {
		ended = append(ended, fleetv1alpha1.ConditionReflected)
	}
	for _, c := range before {
		drops := slices.Contains(dropped, c.Type) || c.Status == metav1.ConditionTrue && slices.Contains(ended, c.Type)
		if !drops && meta.FindStatusCondition(conditions, c.Type) == nil {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// expiredKubeconfig reports whether the last written token has expired.
func expiredKubeconfig(k *fleetv1alpha1.ImportKubeconfigStatus, now time.Time) bool {
	return k != nil && k.ExpirationTime != nil && !now.Before(k.ExpirationTime.Time)
}

// withoutToken are the reasons for which there is no new token.
func withoutToken() []string {
	return []string{
		fleetv1alpha1.ReasonTokenRefused, fleetv1alpha1.ReasonServiceAccountNotFound, fleetv1alpha1.ReasonServiceAccountTokenRefused,
		fleetv1alpha1.ReasonServiceAccountTokenInvalid, fleetv1alpha1.ReasonServiceAccountTokenUnavailable,
	}
}

// deciding are the conditions that Ready summarizes, in the order of an import's steps.
func deciding() []string {
	return []string{
		fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ConditionAdmissionEnforced, fleetv1alpha1.ConditionObserved,
		fleetv1alpha1.ConditionReflected, fleetv1alpha1.ConditionKubeconfigReady,
	}
}

// judge adds Ready, and Stalled where a user has to act.
func judge(s *scope, res result, conditions []metav1.Condition) []metav1.Condition {
	ready := metav1.Condition{
		Type: fleetv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonImported,
		Message: "The cluster is reflected, and nothing of it was changed",
	}
	if !s.imp.DeletionTimestamp.IsZero() {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, fleetv1alpha1.ReasonUnimporting, "What the import created is being removed"
		for _, c := range res.conditions {
			if c.Status == metav1.ConditionFalse {
				ready.Reason, ready.Message = c.Reason, c.Message
			}
		}
		return stalled(ready)
	}
	if c := meta.FindStatusCondition(conditions, fleetv1alpha1.ConditionAlreadyManaged); c != nil && c.Status == metav1.ConditionTrue {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, c.Reason, c.Message
		return stalled(ready)
	}
	for _, of := range deciding() {
		c := meta.FindStatusCondition(conditions, of)
		switch {
		case c == nil:
			ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, fleetv1alpha1.ReasonWaitingForProvider, "The import has not reached this step yet: "+of
			return stalled(ready)
		case c.Status != metav1.ConditionTrue && c.Reason != fleetv1alpha1.ReasonKubeconfigNotRequested:
			ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, c.Reason, c.Message
			return stalled(ready)
		}
	}
	return stalled(ready)
}

// stalled adds the condition Stalled where the import cannot proceed by itself.
func stalled(ready metav1.Condition) []metav1.Condition {
	passes := []string{
		fleetv1alpha1.ReasonWaitingForProvider, fleetv1alpha1.ReasonUnimporting, fleetv1alpha1.ReasonCredentialsNotFound,
		fleetv1alpha1.ReasonServiceAccountTokenUnavailable, fleetv1alpha1.ReasonHubServiceAccountNotFound,
	}
	if ready.Status == metav1.ConditionTrue || slices.Contains(passes, ready.Reason) {
		return []metav1.Condition{ready}
	}
	c := ready
	c.Type, c.Status = fleetv1alpha1.ConditionStalled, metav1.ConditionTrue
	return []metav1.Condition{ready, c}
}

// buildObserved is the part of the facts that users see.
func buildObserved(f reflection.Facts) *fleetv1alpha1.ObservedCluster {
	o := &fleetv1alpha1.ObservedCluster{
		Cloud: fleetv1alpha1.ImportCloud(f.Cloud), ID: cut(f.ID, maxID),
		Region: cut(f.Location, 64), Version: cut(f.Version, 64),
		NodePools: fmt.Sprintf("%d/%d", len(f.NodePools), len(f.NodePools)+len(f.PendingNodePools)+len(f.GoneNodePools)),
	}
	if !f.Created.IsZero() {
		o.CreationTime = &metav1.Time{Time: f.Created}
	}
	if f.Endpoint.Host != "" {
		o.Endpoint = cut(fmt.Sprintf("%s:%d", f.Endpoint.Host, f.Endpoint.Port), 300)
	}
	for _, c := range f.Capacity {
		if !slices.Contains(o.OtherCapacity, c.Type) && len(o.OtherCapacity) < 16 {
			o.OtherCapacity = append(o.OtherCapacity, c.Type)
		}
	}
	return o
}

// buildLossy is the part of the lossy fields that users see.
func buildLossy(all []reflection.Lossy) []fleetv1alpha1.LossyField {
	var out []fleetv1alpha1.LossyField
	for _, l := range all {
		kind, name, _ := strings.Cut(l.Object, "/")
		if kind == "" {
			kind, name = "ClusterImport", ""
		}
		field := fleetv1alpha1.LossyField{
			Kind: cut(kind, 63), Name: cut(name, 253), Field: cut(l.Field, 253), Observed: cut(l.Observed, 256),
			Reflected: cut(l.Default, 256), Reason: cut(l.Reason, 256),
		}
		if len(out) < maxLossy && !slices.Contains(out, field) {
			out = append(out, field)
		}
	}
	return out
}

// boundedText is a message, cut and cleaned: parts of it come from others.
func boundedText(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }), " ")
	return condition.Text(strings.TrimRight(s, ". "), maxMessage)
}

// cut cuts a text to so many characters.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if characters := []rune(s); len(characters) > most {
		return string(characters[:most-1]) + "…"
	}
	return s
}

// joined names a few of many.
func joined(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
