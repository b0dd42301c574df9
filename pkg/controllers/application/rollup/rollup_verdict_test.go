// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/verdict"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

func TestVerdictsOnApplicationReports(t *testing.T) {
	kind := fleetv1alpha1.GroupVersion.WithKind("ApplicationReport")
	connected := connection.Cluster{Name: reported, State: connection.StateConnected, Reason: fleetv1alpha1.ReasonConnected}
	lost := connection.Cluster{Name: reported, State: connection.StateBackoff, Reason: fleetv1alpha1.ReasonDialError}
	complete := rollupView{engaged: true, complete: true, reached: true}
	broken := complete
	broken.totals.Applications = fleetv1alpha1.ApplicationCounts{Total: 1, Degraded: 1}
	blocked := func(reason string) rollupView {
		return rollupView{engaged: true, reached: true, blocked: &condition.Error{Reason: reason, Message: "It is so."}}
	}
	report := func(cluster connection.Cluster, v rollupView) *unstructured.Unstructured {
		r := &fleetv1alpha1.ApplicationReport{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "capi-w1", Generation: 1}}
		r.Status, _ = reportStatus(cluster, v, r.Status, r.Generation, time.Unix(1_700_000_000, 0))
		return verdict.Object(t, kind, r)
	}
	table := verdict.Table{Kind: kind.GroupKind(), Report: true, Cases: map[string]verdict.Case{
		"Watching": {Reason: "It shows the cluster as it is.", Object: report(connected, complete), Want: verdict.Current},
		"Broken": {
			Reason: "What it shows is right, also if an Application is broken.", Object: report(connected, broken), Want: verdict.Current,
		},
		"Unreachable": {Reason: "The health of its Applications is unknown.", Object: report(lost, complete), Want: verdict.Failed},
		"Syncing":     {Reason: "It is being read.", Object: report(connected, rollupView{engaged: true}), Want: verdict.InProgress},
		"NotServed": {
			Reason: "The cluster does not let Masthead look.",
			Object: report(connected, blocked(fleetv1alpha1.ReasonNotServed)), Want: verdict.Failed,
		},
		"Disabled": {
			Reason: "The class disables Applications.", Object: report(connected, blocked(fleetv1alpha1.ReasonDisabled)), Want: verdict.Suspended,
		},
	}}
	table.Check(t)
	verdict.Covers(t, verdict.Reasons(t, "apis/fleet/v1alpha1", "of an ApplicationReport"), nil, table.Objects()...)
}
