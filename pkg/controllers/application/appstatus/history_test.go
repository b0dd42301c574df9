// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

func TestHistoryHasTheLastTenChanges(t *testing.T) {
	healths := []appsv1alpha1.Health{appsv1alpha1.HealthProgressing, appsv1alpha1.HealthHealthy}
	var status appsv1alpha1.ApplicationStatus
	step := func(minute int, h appsv1alpha1.Health) {
		status.History = appendHistory(status, h, strings.Repeat("x", 300), statusTime(minute))
		status.Health = h
	}
	for i := range 25 {
		step(i, healths[i%2])
		step(i, healths[i%2]) // No change.
	}
	if len(status.History) != appsv1alpha1.MaxHistory {
		t.Fatalf("want ten changes, got %d", len(status.History))
	}
	for i, c := range status.History {
		if at := 24 - i; !c.Time.Equal(new(statusTime(at))) || c.Health != healths[at%2] || len([]rune(c.Message)) != maxHistoryMessage {
			t.Errorf("change %d: got %+v", i, c)
		}
	}
	upgraded := appsv1alpha1.ApplicationStatus{Health: appsv1alpha1.HealthHealthy}
	if got := appendHistory(upgraded, appsv1alpha1.HealthHealthy, "", statusTime(0)); got != nil {
		t.Errorf("a status of an older version is not written for its history, got %v", got)
	}
}

func TestEventsAreBounded(t *testing.T) {
	change := func(minutes ...int) (old, now appsv1alpha1.ApplicationStatus) {
		old.Health, now.Health = appsv1alpha1.HealthHealthy, appsv1alpha1.HealthDegraded
		for _, m := range minutes {
			now.History = append(now.History, appsv1alpha1.HealthChange{Time: statusTime(m)})
		}
		return old, now
	}
	for _, tc := range []struct {
		name, reason string
		minutes      []int
		change       func(old, now *appsv1alpha1.ApplicationStatus)
		want         bool
	}{
		{name: "a change", reason: "It is reported.", minutes: []int{30, 10}, want: true},
		{name: "the first health", reason: "Everybody expects it.", minutes: []int{30}, change: func(old, _ *appsv1alpha1.ApplicationStatus) { old.Health = "" }},
		{name: "no change", reason: "There is nothing to tell.", minutes: []int{30}, change: func(old, now *appsv1alpha1.ApplicationStatus) { old.Health = now.Health }},
		{name: "some changes", reason: "Five in ten minutes are reported.", minutes: []int{30, 29, 28, 27, 26, 5}, want: true},
		{name: "flapping", reason: "The history shows it.", minutes: []int{30, 29, 28, 27, 26, 25}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old, now := change(tc.minutes...)
			if tc.change != nil {
				tc.change(&old, &now)
			}
			if got := isWorthAnEvent(old, now); got != tc.want {
				t.Errorf("%s: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}

	// A whole cluster that fails at once is not one Event for each Application.
	recorder := events.NewFakeRecorder(10 * announcementsAtOnce)
	a := NewAnnouncements(recorder, clocktesting.NewFakeClock(statusTime(0).Time))
	for range 5 * announcementsAtOnce {
		old, now := change(30)
		now.Message = "Service \"web\" is Degraded."
		a.Changed(&appsv1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop"}, Status: old}, now)
	}
	if got := len(recorder.Events); got != announcementsAtOnce {
		t.Errorf("want %d Events, got %d", announcementsAtOnce, got)
	}
	if got, want := <-recorder.Events, []string{"Warning", "HealthChanged", "The health was Healthy and is Degraded.", "Service \"web\""}; slices.ContainsFunc(want, func(s string) bool { return !strings.Contains(got, s) }) {
		t.Errorf("want %q in the Event, got %q", want, got)
	}
}
