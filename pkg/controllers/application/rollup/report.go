// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// rollupPatience is how long a current report is kept while the Applications of its cluster are listed again: after a
// restart of the manager, or when a connection is replaced.
const rollupPatience = 30 * time.Second

// reportStatus computes the status of a cluster's report from the previous one, and when to check again if nothing
// happens until then; zero means never.
func reportStatus(
	cluster connection.Cluster, v rollupView, old fleetv1alpha1.ApplicationReportStatus, generation int64, now time.Time,
) (fleetv1alpha1.ApplicationReportStatus, time.Duration) {
	before := meta.FindStatusCondition(old.Conditions, fleetv1alpha1.ConditionCurrent)
	if wait, hold := held(cluster, v, before, now); hold {
		return old, wait
	}
	current := currentCondition(cluster, v)
	current.ObservedGeneration, current.LastTransitionTime = generation, metav1.NewTime(now).Rfc3339Copy()
	status := fleetv1alpha1.ApplicationReportStatus{Conditions: slices.Clone(old.Conditions)}
	meta.SetStatusCondition(&status.Conditions, current)

	if current.Status == metav1.ConditionTrue {
		status.Applications, status.Components = v.totals.Applications, v.totals.Components
		status.Worst, status.Truncated = v.worst, v.more
		status.Message = worstMessage(status.Worst)
		return status, 0
	}
	status.Message = current.Message
	status.LastKnown = lastKnown(v, old, before)
	if k := status.LastKnown; k != nil {
		// None of them is known to be healthy.
		status.Applications.Total, status.Applications.Unknown = k.Applications.Total, k.Applications.Total
		status.Components.Wanted = k.Components.Wanted
	}
	if current.Reason == fleetv1alpha1.ReasonUnreachable {
		status.LastSeen = lastSeen(v, old, before, now)
	}
	return status, 0
}

// held reports whether a report is kept because the outcome of an operation is pending: a connection attempt, or the
// first list of a cluster whose report is current. Otherwise each restart of the manager would set every report to
// False. Both are bounded: each attempt has a deadline, also of those that a cluster waits for, and the list has one
// here.
func held(cluster connection.Cluster, v rollupView, before *metav1.Condition, now time.Time) (time.Duration, bool) {
	switch {
	case before == nil:
		return 0, false
	case (cluster.State == connection.StatePending || cluster.State == connection.StateConnecting) &&
		cluster.Reason == fleetv1alpha1.ReasonConnecting:
		return 0, true
	case cluster.State == connection.StateConnected && before.Status == metav1.ConditionTrue && !v.complete && v.blocked == nil:
		wait := v.since.Add(rollupPatience).Sub(now)
		return wait, wait > 0
	}
	return 0, false
}

// currentCondition says whether the known state of a cluster's Applications is current.
func currentCondition(cluster connection.Cluster, v rollupView) metav1.Condition {
	c := metav1.Condition{Type: fleetv1alpha1.ConditionCurrent, Status: metav1.ConditionFalse}
	switch {
	case cluster.State != connection.StateConnected:
		// While probes fail, the health of the Applications is not known either.
		c.Reason = fleetv1alpha1.ReasonUnreachable
		c.Message = "There is no working connection to the cluster: " + cmp.Or(cluster.Message, cluster.Reason, string(cluster.State))
	case v.blocked != nil:
		c.Reason, c.Message = v.blocked.Reason, v.blocked.Message
	case !v.complete:
		c.Reason, c.Message = fleetv1alpha1.ReasonSyncing, "The Applications of the cluster are being read."
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, fleetv1alpha1.ReasonWatching, "The Applications of the cluster are watched."
	}
	c.Message = condition.Text(c.Message, bounds.Message)
	return c
}

// lastKnown is the state when the report was last current: as this process saw it or, before that, as the report says.
func lastKnown(v rollupView, old fleetv1alpha1.ApplicationReportStatus, before *metav1.Condition) *fleetv1alpha1.LastKnownApplications {
	switch {
	case v.complete:
		// The cluster is engaged, but does not answer.
		return &v.totals
	case v.lastKnown != nil:
		return v.lastKnown
	case before != nil && before.Status == metav1.ConditionTrue:
		return &fleetv1alpha1.LastKnownApplications{Applications: old.Applications, Components: old.Components}
	}
	return old.LastKnown
}

// lastSeen is when an unreachable cluster was last known to be reachable. It does not change until the cluster is back.
func lastSeen(v rollupView, old fleetv1alpha1.ApplicationReportStatus, before *metav1.Condition, now time.Time) *metav1.Time {
	switch {
	case old.LastSeen != nil:
		return old.LastSeen
	case v.reached:
		t := metav1.NewTime(now).Rfc3339Copy()
		return &t
	case before != nil && before.Status == metav1.ConditionTrue:
		// The process that saw it since then has ended.
		return &before.LastTransitionTime
	}
	return nil
}

// worstMessage names the worst Application.
func worstMessage(worst []fleetv1alpha1.WorstApplication) string {
	if len(worst) == 0 {
		return ""
	}
	w := worst[0]
	message := fmt.Sprintf("%s/%s: %s", w.Namespace, w.Name, cmp.Or(w.Message, w.Health))
	return condition.Text(message, bounds.Message)
}

// reportDiffers reports whether the status of a report has to be written. Others' conditions are ignored.
func reportDiffers(have, want fleetv1alpha1.ApplicationReportStatus) bool {
	have.Conditions = ourConditions(have.Conditions)
	want.Conditions = ourConditions(want.Conditions)
	return !equality.Semantic.DeepEqual(have, want)
}

func ourConditions(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return c.Type != fleetv1alpha1.ConditionCurrent })
}
