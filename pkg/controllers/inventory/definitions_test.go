// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	clocktesting "k8s.io/utils/clock/testing"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

func TestDefinitionsToPublish(t *testing.T) {
	const name, half = mcr.ClusterName("capi/fleet/w1"), publishInterval / 2
	// Each step reports a reason for the definition, none if it is empty, after a while.
	type step struct {
		after         time.Duration
		reason        string
		wait, again   time.Duration
		wantPublished string
	}
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"First": {"The first change is published at once.", []step{{reason: "A", wantPublished: "A"}}},
		"Flips": {
			"Further changes wait, and of several only the last is published.",
			[]step{
				{reason: "A", wantPublished: "A"},
				{after: half, reason: "", wait: half, again: half, wantPublished: "A"},
				{reason: "B", wait: half, again: half, wantPublished: "A"},
				{after: half, reason: "B", wantPublished: "B"},
				{after: half, reason: "A", wait: half, again: half, wantPublished: "B"},
			},
		},
		"Back": {
			"What is as it was published is not published again.",
			[]step{{reason: "A", wantPublished: "A"}, {reason: "", wait: publishInterval, again: publishInterval, wantPublished: "A"},
				{reason: "A", wait: publishInterval, wantPublished: "A"}},
		},
		"Later": {
			"What changes rarely does not wait.",
			[]step{{reason: "A", wantPublished: "A"}, {after: publishInterval, reason: "", wantPublished: ""}, {after: publishInterval, reason: "B", wantPublished: "B"}},
		},
		"ClockSetBack": {
			"A clock that is set back does not keep anything from being published for long.",
			[]step{{reason: "A", wantPublished: "A"}, {after: -time.Hour, reason: "B", wait: publishInterval, again: publishInterval, wantPublished: "A"}},
		},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			d, now := &Definitions{}, time.Now()
			for i, s := range tc.steps {
				now = now.Add(s.after)
				d.set(name, "mysqls.database.acmeco.org", s.reason)
				wait := d.delay(name, now)
				got, again := d.toPublish(name, now)
				want := map[string]string{}
				if s.wantPublished != "" {
					want["mysqls.database.acmeco.org"] = s.wantPublished
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || wait != s.wait || again != s.again {
					t.Errorf("%s Step %d: want to wait %s and %s, got %s and %s (-want +got):\n%s", tc.reason, i, s.wait, s.again, wait, again, diff)
				}
			}
		})
	}
}

func TestNothingIsKeptOfAClusterThatRefusesNothing(t *testing.T) {
	const name = mcr.ClusterName("capi/fleet/w1")
	d, now := &Definitions{}, time.Now()
	d.Report(name, "mysqls.database.acmeco.org", true, &condition.Error{Reason: "A"})
	d.toPublish(name, now)
	d.Report(name, "mysqls.database.acmeco.org", true, nil)
	for range 2 {
		now = now.Add(publishInterval)
		d.toPublish(name, now)
	}
	if d.knows(name) {
		t.Errorf("want nothing, got %v and %v", d.refused, d.published)
	}
}

// TestDefinitionThatIsRefusedAndServedInTurn has a cluster that changes its reported state as fast as it can.
func TestDefinitionThatIsRefusedAndServedInTurn(t *testing.T) {
	// The running manager does not touch the profile of a cluster that is enrolled but not in its fleet yet.
	others := newFakeFleet()
	h := startHub(t, others, nil)
	others.enrol(h.namespace, "w1")
	c := h.cluster("w1")
	clock := clocktesting.NewFakeClock(time.Now())
	r := &reconciler{hub: h.Client, fleet: newFakeFleet(c), definitions: &Definitions{}, clock: clock}
	const crd = "mysqls.database.acmeco.org"
	look := func() (reason, version string, again time.Duration) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), request{Cluster: c.Name})
		if err != nil {
			t.Fatal(err)
		}
		p := h.profile(t, "capi-w1")
		if c := meta.FindStatusCondition(p.Status.Conditions, fleetv1alpha1.ConditionKindsServed); c != nil {
			reason = c.Reason
		}
		return reason, p.ResourceVersion, result.RequeueAfter
	}
	look() // It creates the profile.
	look() // It writes the status.
	r.definitions.Report(c.Name, crd, true, &condition.Error{Reason: "ForeignDefinition"})
	reason, before, again := look()
	if reason != fleetv1alpha1.ReasonDefinitionsRefused || again != 0 {
		t.Errorf("want the first change published at once, got %s, and more after %s", reason, again)
	}
	for range 5 {
		r.definitions.Report(c.Name, crd, true, nil)
		if _, version, again := look(); version != before || again <= 0 || again > publishInterval {
			t.Errorf("want nothing written now, %s became %s, and something soon, got %s", before, version, again)
		}
		r.definitions.Report(c.Name, crd, true, &condition.Error{Reason: "ForeignDefinition"})
		if _, version, _ := look(); version != before {
			t.Errorf("want nothing written, %s became %s", before, version)
		}
	}
	r.definitions.Report(c.Name, crd, true, nil)
	clock.Step(publishInterval)
	if reason, _, again := look(); reason != fleetv1alpha1.ReasonAllServed || again != 0 {
		t.Errorf("want the last change published, got %s, and more after %s", reason, again)
	}
}
