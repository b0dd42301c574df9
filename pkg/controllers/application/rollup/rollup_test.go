// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

const reported mcr.ClusterName = "capi/fleet/w1"

func statusTime(minutes int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC).Add(time.Duration(minutes) * time.Minute))
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func sum(h appsv1alpha1.Health) Summary {
	s := Summary{ApplicationType: "WordPress", Version: "4.8", Health: h, Ready: corev1.ConditionUnknown, Wanted: 3, Installed: 3}
	if h != appsv1alpha1.HealthHealthy {
		s.Message, s.Installed = "It is "+string(h)+".", 2
	}
	return s
}

// countingRollup returns a rollup, its clock, and a function that returns how often it woke a cluster since the last
// call.
func countingRollup() (*Collector, *testingclock.FakePassiveClock, func() int) {
	clock := testingclock.NewFakePassiveClock(statusTime(0).Time)
	r := NewCollector(clock)
	woken := 0
	r.onChange(func(mcr.ClusterName) { woken++ })
	return r, clock, func() int { n := woken; woken = 0; return n }
}

func TestRollupWakesForNewsOnly(t *testing.T) {
	r, _, woken := countingRollup()
	steps := []struct {
		reason string
		do     func()
		want   int
	}{
		{"The cluster is not engaged.", func() { r.Observe(reported, named("a"), sum(appsv1alpha1.HealthHealthy)) }, 0},
		{"It is there.", func() { r.Engaged(reported) }, 1},
		{"A partial result is not reported.", func() { r.Observe(reported, named("a"), sum(appsv1alpha1.HealthHealthy)) }, 0},
		{"Now it is known.", func() { r.Synced(reported) }, 1},
		{"That is known already.", func() { r.Synced(reported) }, 0},
		{"So is that.", func() { r.Observe(reported, named("a"), sum(appsv1alpha1.HealthHealthy)) }, 0},
		{"It broke.", func() { r.Observe(reported, named("a"), sum(appsv1alpha1.HealthDegraded)) }, 1},
		{"Another one.", func() { r.Observe(reported, named("b"), sum(appsv1alpha1.HealthHealthy)) }, 1},
		{"It went.", func() { r.Forget(reported, named("b")) }, 1},
		{"It was not there.", func() { r.Forget(reported, named("b")) }, 0},
		{"What was observed is newer.", func() { r.Offer(reported, named("a"), sum(appsv1alpha1.HealthHealthy)) }, 0},
		{"Applications are disabled.", func() { r.Unwatched(reported, condition.Error{Reason: fleetv1alpha1.ReasonDisabled, Message: "No."}) }, 1},
		{"That is known already.", func() { r.Unwatched(reported, condition.Error{Reason: fleetv1alpha1.ReasonDisabled, Message: "No."}) }, 0},
		{"It is gone.", func() { r.Disengaged(reported) }, 1},
		{"A pass that ended late.", func() { r.Observe(reported, named("a"), sum(appsv1alpha1.HealthHealthy)) }, 0},
		{"As above.", func() { r.Synced(reported) }, 0},
		{"It left.", func() { r.drop(reported) }, 0},
		{"What comes late is about nothing.", func() { r.Disengaged(reported); r.Forget(reported, named("a")) }, 0},
	}
	for _, s := range steps {
		s.do()
		if got := woken(); got != s.want {
			t.Fatalf("%s\nwant %d, got %d", s.reason, s.want, got)
		}
	}
	if len(r.clusters) != 0 {
		t.Error("something is kept of a cluster that left")
	}
}

func TestRollupForgetsWhatANewInstanceDoesNotShow(t *testing.T) {
	r, _, _ := countingRollup()
	r.Engaged(reported)
	r.Observe(reported, named("stays"), sum(appsv1alpha1.HealthHealthy))
	r.Observe(reported, named("goes"), sum(appsv1alpha1.HealthHealthy))
	r.Synced(reported)
	r.Engaged(reported) // Another instance takes its place.
	r.Observe(reported, named("stays"), sum(appsv1alpha1.HealthHealthy))
	if v := r.view(reported, true); v.complete {
		t.Error("the new instance has not shown everything yet")
	}
	r.Synced(reported)
	if got := r.view(reported, true).totals.Applications.Total; got != 1 {
		t.Errorf("want 1 Application, got %d", got)
	}
}

// A scrape may take as long as its client likes to read it: meanwhile, the Applications can change.
func TestEachDoesNotHoldTheLock(t *testing.T) {
	r, _, _ := countingRollup()
	r.Engaged("capi/fleet/empty")
	r.Engaged(reported)
	r.Observe(reported, named("a"), sum(appsv1alpha1.HealthHealthy))
	var got []mcr.ClusterName
	r.Each(func(cluster mcr.ClusterName, applications Applications) {
		r.Observe(cluster, named("b"), sum(appsv1alpha1.HealthHealthy))
		if n := applications.Totals().Applications.Total; n != 1 {
			t.Errorf("want the 1 Application of the copy, got %d", n)
		}
		got = append(got, cluster)
	})
	if want := []mcr.ClusterName{reported}; !slices.Equal(got, want) {
		t.Errorf("want each cluster that has Applications, %v, got %v", want, got)
	}
}

// A cluster may wait for its turn to connect for longer than its Applications take to be listed.
func TestPatienceBeginsWithTheConnection(t *testing.T) {
	r, clock, _ := countingRollup()
	for _, step := range []struct {
		connected, again bool
	}{{}, {connected: true, again: true}, {connected: true}, {}, {connected: true, again: true}} {
		clock.SetTime(clock.Now().Add(2 * rollupPatience))
		if got := r.view(reported, step.connected).since; got.Equal(clock.Now()) != step.again {
			t.Errorf("%+v: at %s, it began at %s", step, clock.Now(), got)
		}
	}
}

func TestTotals(t *testing.T) {
	var applications Applications
	add := func(namespace, name string, s Summary) {
		applications = append(applications, Application{types.NamespacedName{Namespace: namespace, Name: name}, s})
	}
	ready := func(s Summary, status corev1.ConditionStatus) Summary { s.Ready = status; return s }
	add("shop", "fine", ready(sum(appsv1alpha1.HealthHealthy), corev1.ConditionTrue))
	add("shop", "unready", ready(sum(appsv1alpha1.HealthHealthy), corev1.ConditionFalse))
	add("shop", "paused", sum(appsv1alpha1.HealthSuspended))
	add("b", "broken", sum(appsv1alpha1.HealthDegraded))
	add("a", "broken", sum(appsv1alpha1.HealthDegraded))
	add("shop", "coming", sum(appsv1alpha1.HealthProgressing))
	add("shop", "gone", sum(appsv1alpha1.HealthMissing))
	add("shop", "empty", Summary{Health: appsv1alpha1.HealthUnknown, Ready: corev1.ConditionUnknown})

	got := applications.Totals()
	want := fleetv1alpha1.ApplicationCounts{
		Total: 8, Healthy: 2, Suspended: 1, Progressing: 1, Unknown: 1, Missing: 1, Degraded: 2, Ready: 1, NotReady: 1, Installed: 2,
	}
	if diff := cmp.Diff(want, got.Applications); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(fleetv1alpha1.ComponentTotals{Wanted: 21, Installed: 16}, got.Components); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var order []string
	worst, more := applications.worst()
	for _, w := range worst {
		order = append(order, w.Namespace+"/"+w.Name)
	}
	if diff := cmp.Diff([]string{"a/broken", "b/broken", "shop/gone", "shop/empty", "shop/coming", "shop/paused", "shop/unready"}, order); diff != "" || more {
		t.Errorf("The worst first, and then by name; -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(fleetv1alpha1.WorstApplication{
		Namespace: "a", Name: "broken", Type: "WordPress", Version: "4.8", Health: "Degraded", Ready: "Unknown", Installed: "2/3", Message: "It is Degraded.",
	}, worst[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	for i := range 20 {
		add("many", fmt.Sprintf("x%02d", i), sum(appsv1alpha1.HealthDegraded))
	}
	if worst, more = applications.worst(); len(worst) != fleetv1alpha1.MaxWorstApplications || !more {
		t.Errorf("want 10 of many, got %d, more: %t", len(worst), more)
	}
	if got := saturated(math.MaxInt64); got != math.MaxInt32 {
		t.Errorf("numbers stop at what they can be, got %d", got)
	}
}

func TestReportStatus(t *testing.T) {
	now := statusTime(60).Rfc3339Copy()
	before := statusTime(0).Rfc3339Copy()
	connected := connection.Cluster{Name: reported, State: connection.StateConnected, Reason: fleetv1alpha1.ReasonConnected}
	lost := connection.Cluster{Name: reported, State: connection.StateBackoff, Reason: fleetv1alpha1.ReasonDialError, Message: "It does not answer"}
	degraded := connection.Cluster{Name: reported, State: connection.StateDegraded, Reason: fleetv1alpha1.ReasonDialError, Message: "It does not answer"}
	connecting := connection.Cluster{Name: reported, State: connection.StateConnecting, Reason: fleetv1alpha1.ReasonConnecting}
	counts := fleetv1alpha1.ApplicationCounts{Total: 5, Healthy: 4, Degraded: 1, Ready: 2, Installed: 4}
	components := fleetv1alpha1.ComponentTotals{Wanted: 15, Installed: 14}
	worst := []fleetv1alpha1.WorstApplication{{Namespace: "shop", Name: "a", Health: "Degraded", Message: "It is broken."}}
	known := &fleetv1alpha1.LastKnownApplications{Applications: counts, Components: components}
	complete := rollupView{
		engaged: true, complete: true, reached: true, since: before.Time,
		totals: *known, worst: worst, more: true,
	}
	current := fleetv1alpha1.ApplicationReportStatus{
		Applications: counts, Components: components, Worst: worst, Truncated: true, Message: "shop/a: It is broken.",
		Conditions: []metav1.Condition{{Type: "Current", Status: "True", Reason: "Watching", Message: "The Applications of the cluster are watched.", LastTransitionTime: before}},
	}
	unknown := func(reason, message string, at metav1.Time, lastSeen *metav1.Time) fleetv1alpha1.ApplicationReportStatus {
		return fleetv1alpha1.ApplicationReportStatus{
			Applications: fleetv1alpha1.ApplicationCounts{Total: 5, Unknown: 5}, Components: fleetv1alpha1.ComponentTotals{Wanted: 15},
			Message: message, LastKnown: known, LastSeen: lastSeen,
			Conditions: []metav1.Condition{{Type: "Current", Status: "False", Reason: reason, Message: message, LastTransitionTime: at}},
		}
	}
	const noConnection = "There is no working connection to the cluster: It does not answer"
	engagedAt := func(minutes int) rollupView {
		return rollupView{engaged: true, reached: true, since: statusTime(minutes).Rfc3339Copy().Time}
	}
	cases := map[string]struct {
		reason  string
		cluster connection.Cluster
		view    rollupView
		old     fleetv1alpha1.ApplicationReportStatus
		want    fleetv1alpha1.ApplicationReportStatus
		again   time.Duration
	}{
		"Watching": {
			reason: "It says what is.", cluster: connected, view: complete, old: current, want: current,
		},
		"First": {
			reason: "There is no status yet.", cluster: connected, view: engagedAt(60),
			want: fleetv1alpha1.ApplicationReportStatus{
				Message:    "The Applications of the cluster are being read.",
				Conditions: []metav1.Condition{{Type: "Current", Status: "False", Reason: "Syncing", Message: "The Applications of the cluster are being read.", LastTransitionTime: now}},
			},
		},
		"Lost": {
			reason: "A cluster that cannot be reached is never shown as healthy.", cluster: lost,
			view: rollupView{reached: true, since: now.Time, lastKnown: known}, old: current,
			want: unknown("Unreachable", noConnection, now, &now),
		},
		"LostForLonger": {
			reason: "The time does not move.", cluster: lost,
			view: rollupView{reached: true, since: now.Time, lastKnown: known}, old: unknown("Unreachable", noConnection, before, &before),
			want: unknown("Unreachable", noConnection, before, &before),
		},
		"ProbesFail": {
			reason: "Its caches say what was, not what is.", cluster: degraded, view: complete, old: current,
			want: unknown("Unreachable", noConnection, now, &now),
		},
		"Back": {
			reason: "It is as it was. LastSeen is only set while the cluster is unreachable.", cluster: connected, view: complete,
			old: unknown("Unreachable", noConnection, before, &before),
			want: func() fleetv1alpha1.ApplicationReportStatus {
				s := *current.DeepCopy()
				s.Conditions[0].LastTransitionTime = now
				return s
			}(),
		},
		"BackAndSyncing": {
			reason: "What was lost is not shown as healthy before it was read.", cluster: connected, view: engagedAt(60),
			old:  unknown("Unreachable", noConnection, before, &before),
			want: unknown("Syncing", "The Applications of the cluster are being read.", before, nil),
		},
		"Restarted": {
			reason: "A manager that restarts does not take the report through False.", cluster: connected, view: engagedAt(60),
			old: current, want: current, again: rollupPatience,
		},
		"RestartedAndSlow": {
			reason: "But not for ever.", cluster: connected, view: engagedAt(59), old: current,
			want: unknown("Syncing", "The Applications of the cluster are being read.", now, nil),
		},
		"Connecting": {
			reason: "The attempt has no outcome yet.", cluster: connecting, view: rollupView{since: now.Time}, old: current, want: current,
		},
		"WaitingToConnect": {
			reason: "It waits for its turn among many.", view: rollupView{}, old: current, want: current,
			cluster: connection.Cluster{Name: reported, State: connection.StatePending, Reason: fleetv1alpha1.ReasonConnecting},
		},
		"ConnectingAgain": {
			reason: "Each attempt would be two writes.", cluster: connecting, view: rollupView{since: now.Time},
			old: unknown("Unreachable", noConnection, before, &before), want: unknown("Unreachable", noConnection, before, &before),
		},
		"RestartedAndLost": {
			reason: "Only the report still has what was true, and since when.", cluster: lost, view: rollupView{since: now.Time},
			old: current, want: unknown("Unreachable", noConnection, now, &before),
		},
		"NeverSeen": {
			reason: "There is no time at which it was seen.", cluster: lost, view: rollupView{since: now.Time},
			want: fleetv1alpha1.ApplicationReportStatus{
				Message:    noConnection,
				Conditions: []metav1.Condition{{Type: "Current", Status: "False", Reason: "Unreachable", Message: noConnection, LastTransitionTime: now}},
			},
		},
		"Disabled": {
			reason: "Applications are not watched, so their health is unknown.", cluster: connected, old: current,
			view: rollupView{engaged: true, reached: true, since: now.Time, lastKnown: known, blocked: &condition.Error{Reason: fleetv1alpha1.ReasonDisabled, Message: "The class says so."}},
			want: unknown("Disabled", "The class says so.", now, nil),
		},
		"DisabledAndLost": {
			reason: "What is worse is said.", cluster: lost, old: unknown("Disabled", "The class says so.", before, nil),
			view: rollupView{reached: true, since: now.Time, lastKnown: known},
			want: unknown("Unreachable", noConnection, before, &now),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			old := tc.old.DeepCopy()
			got, again := reportStatus(tc.cluster, tc.view, tc.old, 0, now.Time)
			if diff := cmp.Diff(tc.want, got); diff != "" || again != tc.again {
				t.Errorf("%s\nagain: want %s, got %s; -want +got:\n%s", tc.reason, tc.again, again, diff)
			}
			if diff := cmp.Diff(*old, tc.old); diff != "" {
				t.Errorf("the status that there is was changed:\n%s", diff)
			}
			if c := meta.FindStatusCondition(got.Conditions, fleetv1alpha1.ConditionCurrent); c.Status != metav1.ConditionTrue &&
				(got.Applications.Healthy != 0 || got.Applications.Ready != 0 || len(got.Worst) != 0) {
				t.Errorf("a report that is not current shows something as healthy: %+v", got.Applications)
			}
			// The same status is not written again, also later.
			later := now.Add(20 * time.Second)
			if second, _ := reportStatus(tc.cluster, tc.view, got, 0, later); tc.again == 0 && reportDiffers(got, second) {
				t.Errorf("the same observation led to another status:\n%s", cmp.Diff(got, second))
			}
		})
	}
}

func TestReportIsBounded(t *testing.T) {
	long := strings.Repeat("\U0001F30D", 100_000)
	lost := connection.Cluster{Name: reported, State: connection.StateBackoff, Message: long + "\n"}
	status, _ := reportStatus(lost, rollupView{}, fleetv1alpha1.ApplicationReportStatus{}, 0, time.Time{})
	worst := worstMessage([]fleetv1alpha1.WorstApplication{{Namespace: strings.Repeat("n", 253), Name: strings.Repeat("n", 253), Message: long}})
	for what, text := range map[string]string{"message": status.Message, "condition": status.Conditions[0].Message, "worst": worst} {
		if n := len([]rune(text)); n > bounds.Message {
			t.Errorf("%s: want at most %d characters, got %d", what, bounds.Message, n)
		}
	}
}

func TestRollupTakesWhatIsOfferedUntilItIsObserved(t *testing.T) {
	r, _, _ := countingRollup()
	r.Engaged(reported)
	r.Observe(reported, named("observed"), sum(appsv1alpha1.HealthDegraded))
	r.Offer(reported, named("observed"), sum(appsv1alpha1.HealthHealthy))
	r.Offer(reported, named("offered"), sum(appsv1alpha1.HealthHealthy))
	r.Synced(reported)
	if got := r.view(reported, true).totals.Applications; got.Total != 2 || got.Degraded != 1 || got.Healthy != 1 {
		t.Errorf("want one that is degraded, as observed, and one that is healthy, as offered; got %+v", got)
	}
	// A watch that was refused for a while begins again.
	r.Unwatched(reported, condition.Error{Reason: fleetv1alpha1.ReasonNotServed, Message: "No."})
	if r.IsComplete(reported) {
		t.Error("it is complete, though the Applications of the cluster are unknown")
	}
	r.Offer(reported, named("offered"), sum(appsv1alpha1.HealthHealthy))
	r.Synced(reported)
	if got := r.view(reported, true).totals.Applications.Total; got != 1 {
		t.Errorf("want 1 Application, got %d", got)
	}
}
