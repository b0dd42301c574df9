// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// A group that does not answer holds back what is said of its own components, and nothing else.
func TestAGroupThatDoesNotAnswerHoldsBackItsOwnComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.workload, f.crd())
	kinds := components(configMaps, "settings")
	kinds["db"] = f.databaseKind()
	app := f.application("shop", kinds)
	settings := f.configMap("settings", "shop")
	f.status(f.database("db", "shop"), map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.installed(app, "db", "settings")
	f.says(app, "db", "True/Healthy ")
	f.answerFor("/apis/"+f.databaseKind().Group+"/v1", http.StatusInternalServerError, `"code":500,"reason":"InternalError"`)
	f.restart()
	f.Delete(f.workload, settings)
	f.health(app, appsv1alpha1.HealthMissing)
	f.says(app, "db", "True/Healthy ")
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := conditionOf(s, appsv1alpha1.ConditionComponentsWatched); got != "True Watched" {
			return fmt.Errorf("got %q", got)
		}
		if s.ComponentsInstalled != "1/2" {
			return errors.New("want the one to be gone, and the other one to be there")
		}
		return nil
	})
}

// What is held is what the status has: as long as nothing else changes, it is the same status.
func TestAStatusThatIsHeldIsTheSame(t *testing.T) {
	for _, tc := range []struct {
		name, reason string
		before       []func(*observation)
		hide         func(*observation)
	}{
		{
			name: "component", reason: "A component keeps what is said of it.",
			before: []func(*observation){with(component("db", appsv1alpha1.HealthDegraded), component("web", appsv1alpha1.HealthHealthy))},
			hide: func(o *observation) {
				o.components[0] = component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonSyncing))
			},
		},
		{
			name: "component that could not be seen", reason: "Why it could not be seen is kept, too.",
			before: []func(*observation){with(component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonKindForbidden)))},
			hide: func(o *observation) {
				o.components[0] = component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonSyncing))
			},
		},
		{
			name: "discovered", reason: "What was discovered keeps what is said of it, wherever it is.",
			before: []func(*observation){with(component("db", appsv1alpha1.HealthHealthy), foundElsewhere("db", appsv1alpha1.HealthDegraded))},
			hide: func(o *observation) {
				notSeen(appsv1alpha1.ReasonSyncing)(&o.components[1])
			},
		},
		{
			name: "what an inventory names elsewhere", reason: "Without it, all would be well for a moment.",
			before: []func(*observation){with(component("db", appsv1alpha1.HealthHealthy), viewOf(
				namespaceKind, types.NamespacedName{}, &condition.Problem{Reason: appsv1alpha1.ReasonNotAllowed, Message: "It is elsewhere."}))},
			hide: func(o *observation) {
				notSeen(appsv1alpha1.ReasonSyncing)(&o.components[1])
			},
		},
		{
			name: "nothing discovered", reason: "A kind of which nothing was found is not news because it is read again.",
			before: []func(*observation){with(component("db", appsv1alpha1.HealthHealthy))},
			hide: func(o *observation) {
				o.components = append(o.components, viewOf(
					configMapKind.GroupVersionKind, types.NamespacedName{}, &condition.Problem{Reason: appsv1alpha1.ReasonSyncing, Message: "Not yet."}))
			},
		},
		{
			name: "component that is not owned", reason: "That it is not is kept, too.",
			before: []func(*observation){with(component("db", appsv1alpha1.HealthHealthy, notOwned))},
			hide: func(o *observation) {
				o.components[0] = component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonSyncing))
			},
		},
		{
			name: "selected", reason: "How many objects are selected is known when all kinds are.",
			before: []func(*observation){with(component("db", appsv1alpha1.HealthHealthy)), func(o *observation) { o.selected = 7 }},
			hide: func(o *observation) {
				o.selected, o.components[0] = 2, component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonSyncing))
			},
		},
		{
			name: "health check", reason: "What its Pod said last counts until the Pods are read.",
			before: []func(*observation){checked(corev1.ConditionTrue, nil)},
			hide: func(o *observation) {
				o.healthCheck.Ready, o.healthCheck.Problem = corev1.ConditionUnknown, &condition.Problem{Reason: appsv1alpha1.ReasonHealthCheckStarting, Message: "Not yet."}
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := statusOf(observed(tc.before...), statusTime(0))
			o := observed(tc.before...)
			o.application.Status = before
			tc.hide(&o)
			for i := range o.components {
				o.components[i].syncing = o.components[i].unseen != nil && o.components[i].unseen.Reason == appsv1alpha1.ReasonSyncing
			}
			o.healthCheck.Syncing = o.healthCheck.Problem != nil
			if !o.hold() {
				t.Fatalf("%s Want all of it to be held", tc.reason)
			}
			if diff := cmp.Diff(before, statusOf(o, statusTime(1))); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWhatAStatusSaysNothingOfIsNotHeld(t *testing.T) {
	syncing := func(v *componentView) { v.syncing = true }
	other := component("db", appsv1alpha1.HealthHealthy, syncing)
	other.kind.Kind = "Deployment"
	for name, tc := range map[string]struct {
		reason string
		now    func(*observation)
		want   bool
	}{
		"Same":       {reason: "It is listed.", now: with(component("db", appsv1alpha1.HealthHealthy, syncing)), want: true},
		"NewName":    {reason: "Nobody has looked at it yet.", now: with(component("web", appsv1alpha1.HealthHealthy, syncing))},
		"OtherKind":  {reason: "It is another object.", now: with(other)},
		"NotSyncing": {reason: "There is nothing to wait for.", now: with(component("web", appsv1alpha1.HealthHealthy)), want: true},
		"HealthCheck": {reason: "It is a new one.", now: func(o *observation) {
			o.healthCheck.Syncing = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := statusOf(observed(with(component("db", appsv1alpha1.HealthHealthy))), statusTime(0))
			o := observed(tc.now)
			o.application.Status = before
			o.application.Generation++
			if got := o.hold(); got != tc.want {
				t.Errorf("%s Want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
