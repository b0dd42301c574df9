// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/health"
)

// A status lists 64 components, and counts the rest. Unlisted ones cannot be held, so the status is not written before
// all of them are known again, or StatusPatience has passed.
func TestAStatusThatListsAPartIsNotWrittenBeforeAllIsKnown(t *testing.T) {
	views := func(of, hidden int, view func(string) appstatus.ComponentView) []appstatus.ComponentView {
		var out []appstatus.ComponentView
		for i := range of {
			v := view(fmt.Sprintf("c-%03d", i))
			if i < hidden {
				v.Found, v.Installed, v.Syncing = nil, false, true
				v.Unseen = &condition.Error{Reason: appsv1alpha1.ReasonSyncing, Message: "It cannot be watched."}
			}
			out = append(out, v)
		}
		return out
	}
	healthy := &record.Component{Health: health.Result{Health: appsv1alpha1.HealthHealthy}}
	found := func(name string) appstatus.ComponentView { return viewOfKept(name, healthy, true) }
	named := func(name string) appstatus.ComponentView { return viewOfKept(name, healthy, false) }
	begun := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	unread := appstatus.NewComponentView(applicationtest.ConfigMapKind.GroupVersionKind, types.NamespacedName{}, &condition.Error{Reason: appsv1alpha1.ReasonSyncing, Message: "Not yet."})
	unread.Syncing = true
	for name, tc := range map[string]struct {
		reason      string
		before, now []appstatus.ComponentView
		since       time.Duration
		want        bool
	}{
		"AllListed":  {reason: "What is listed is held.", before: views(64, 0, found), now: views(64, 64, found)},
		"Discovered": {reason: "Only what is listed is known of, so there seem to be 64.", before: views(70, 0, found), now: views(64, 64, found), want: true},
		"NoneListed": {reason: "All of the kind are beyond what is listed.", before: views(70, 0, found), now: append(views(64, 0, found), unread), want: true},
		"Known":      {reason: "There is nothing to wait for.", before: views(70, 0, found), now: views(70, 0, found)},
		"Named":      {reason: "The health of the others is not known.", before: views(70, 0, named), now: views(70, 70, named), want: true},
		"ListedOnly": {reason: "Those that are not known are listed.", before: views(70, 0, named), now: views(70, 64, named)},
		"Impatient":  {reason: "After StatusPatience, the components are reported as unknown.", before: views(70, 0, found), now: views(64, 64, found), since: workload.StatusPatience},
	} {
		t.Run(name, func(t *testing.T) {
			o := appstatus.Observation{Application: &appsv1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "wordpress", Generation: 3}}, Components: tc.before}
			o.Application.Status = appstatus.Build(o, begun)
			o.Components = tc.now
			clk := clocktesting.NewFakeClock(begun.Time)
			s := &scope{w: &workload.Cluster{Clock: clk}, tracked: &workload.Tracked{}}
			s.w.Settling(s.tracked, true)
			clk.Step(tc.since)
			write, err := s.settle(&o)
			if write == tc.want {
				t.Errorf("%s Want to wait: %t, got %t", tc.reason, tc.want, !write)
			}
			if result, _ := condition.Result(err); tc.want && result.RequeueAfter != workload.StatusPatience {
				t.Errorf("want it to be looked at again, got %s", result.RequeueAfter)
			}
		})
	}
}

// After a restart, discovered objects are unknown until their kinds are listed, and only 64 of them are in the status.
func TestMoreThanIsListedIsNotMiscountedAfterARestart(t *testing.T) {
	t.Parallel()
	const many = appsv1alpha1.MaxStatusEntries + 8
	f := newFixture(t)
	for i := range many {
		f.CreateConfigMapWith(fmt.Sprintf("settings-%d", i), applicationtest.PartOfLabels("shop"), nil)
	}
	app := f.CreateDiscovering("shop", applicationtest.DiscoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "shop"})
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.Counts.Discovered != many || !s.Truncated {
			return fmt.Errorf("got %+v", s.Counts)
		}
		return nil
	})
	f.WaitForIdle()
	before := f.Traffic.Count()
	f.restart()
	f.Within("the ConfigMaps are read, and the Application is looked at", func() error { return f.looked(app.Name) })
	f.WaitForIdle()
	for _, request := range f.Traffic.Since(before, controllertest.Writes()...) {
		t.Errorf("after a restart nothing is written, got %s", request)
	}
}
