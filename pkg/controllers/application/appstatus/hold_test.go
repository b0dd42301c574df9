// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// Held entries are those of the status: as long as nothing else changes, the status is unchanged.
func TestAStatusThatIsHeldIsTheSame(t *testing.T) {
	for _, tc := range []struct {
		name, reason string
		before       []func(*Observation)
		hide         func(*Observation)

		// status is what was said before that.
		status appsv1alpha1.ApplicationStatus
	}{
		{
			name: "component", reason: "A component keeps what is said of it.",
			before: []func(*Observation){with(component("db", appsv1alpha1.HealthDegraded), component("web", appsv1alpha1.HealthHealthy))},
			hide: func(o *Observation) {
				o.Components[0] = component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonSyncing))
			},
		},
		{
			name: "component that could not be seen", reason: "Why it could not be seen is kept, too.",
			before: []func(*Observation){with(component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonKindForbidden)))},
			hide: func(o *Observation) {
				o.Components[0] = component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonSyncing))
			},
		},
		{
			name: "Job that has finished", reason: "That it has is kept in what is said of it, and is no reason for anything.",
			before: []func(*Observation){with(component("db", appsv1alpha1.HealthHealthy, asFinishedJob, notSeen(appsv1alpha1.ReasonKindForbidden)))},
			hide: func(o *Observation) {
				o.Components[0] = component("db", appsv1alpha1.HealthHealthy, asFinishedJob, notSeen(appsv1alpha1.ReasonSyncing))
			},
			status: Build(observed(with(component("db", appsv1alpha1.HealthHealthy, asFinishedJob))), statusTime(-1)),
		},
		{
			name: "discovered", reason: "What was discovered keeps what is said of it, wherever it is.",
			before: []func(*Observation){with(component("db", appsv1alpha1.HealthHealthy), foundElsewhere("db", appsv1alpha1.HealthDegraded))},
			hide: func(o *Observation) {
				notSeen(appsv1alpha1.ReasonSyncing)(&o.Components[1])
			},
		},
		{
			name: "what an inventory names elsewhere", reason: "Without it, all would be well for a moment.",
			before: []func(*Observation){with(component("db", appsv1alpha1.HealthHealthy), NewComponentView(
				schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, types.NamespacedName{}, &condition.Error{Reason: appsv1alpha1.ReasonNotAllowed, Message: "It is elsewhere."}))},
			hide: func(o *Observation) {
				notSeen(appsv1alpha1.ReasonSyncing)(&o.Components[1])
			},
		},
		{
			name: "nothing discovered", reason: "A kind of which nothing was found is not news because it is read again.",
			before: []func(*Observation){with(component("db", appsv1alpha1.HealthHealthy))},
			hide: func(o *Observation) {
				o.Components = append(o.Components, NewComponentView(
					schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, types.NamespacedName{}, &condition.Error{Reason: appsv1alpha1.ReasonSyncing, Message: "Not yet."}))
			},
		},
		{
			name: "component that is not owned", reason: "That it is not is kept, too.",
			before: []func(*Observation){with(component("db", appsv1alpha1.HealthHealthy, notOwned))},
			hide: func(o *Observation) {
				o.Components[0] = component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonSyncing))
			},
		},
		{
			name: "selected", reason: "How many objects are selected is known when all kinds are.",
			before: []func(*Observation){with(component("db", appsv1alpha1.HealthHealthy)), func(o *Observation) { o.Selected = 7 }},
			hide: func(o *Observation) {
				o.Selected, o.Components[0] = 2, component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonSyncing))
			},
		},
		{
			name: "health check", reason: "What its Pod said last counts until the Pods are read.",
			before: []func(*Observation){checked(corev1.ConditionTrue, nil)},
			hide: func(o *Observation) {
				o.HealthCheck.Ready, o.HealthCheck.Problem = corev1.ConditionUnknown, &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckStarting, Message: "Not yet."}
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			earlier := observed(tc.before...)
			earlier.Application.Status = tc.status
			before := Build(earlier, statusTime(0))
			o := observed(tc.before...)
			o.Application.Status = before
			tc.hide(&o)
			for i := range o.Components {
				o.Components[i].Syncing = o.Components[i].Unseen != nil && o.Components[i].Unseen.Reason == appsv1alpha1.ReasonSyncing
			}
			o.HealthCheck.Syncing = o.HealthCheck.Problem != nil
			if !o.Hold() {
				t.Fatalf("%s Want all of it to be held", tc.reason)
			}
			if diff := cmp.Diff(before, Build(o, statusTime(1))); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWhatAStatusSaysNothingOfIsNotHeld(t *testing.T) {
	syncing := func(v *ComponentView) { v.Syncing = true }
	other := component("db", appsv1alpha1.HealthHealthy, syncing)
	other.Kind.Kind = "Deployment"
	for name, tc := range map[string]struct {
		reason string
		now    func(*Observation)
		want   bool
	}{
		"Same":       {reason: "It is listed.", now: with(component("db", appsv1alpha1.HealthHealthy, syncing)), want: true},
		"NewName":    {reason: "It was not observed before.", now: with(component("web", appsv1alpha1.HealthHealthy, syncing))},
		"OtherKind":  {reason: "It is another object.", now: with(other)},
		"NotSyncing": {reason: "There is nothing to wait for.", now: with(component("web", appsv1alpha1.HealthHealthy)), want: true},
		"HealthCheck": {reason: "It is a new one.", now: func(o *Observation) {
			o.HealthCheck.Syncing = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := Build(observed(with(component("db", appsv1alpha1.HealthHealthy))), statusTime(0))
			o := observed(tc.now)
			o.Application.Status = before
			o.Application.Generation++
			if got := o.Hold(); got != tc.want {
				t.Errorf("%s Want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
