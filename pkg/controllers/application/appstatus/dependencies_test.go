// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

func dependent(names ...string) *appsv1alpha1.Application {
	return &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "wordpress", UID: "1"},
		Spec:       appsv1alpha1.ApplicationSpec{Dependencies: names},
	}
}

// TestRetrievingDependencies covers the KEP's section of that name, and the parts of "Installation Status Reporting"
// about dependencies.
func TestRetrievingDependencies(t *testing.T) {
	healthy := appsv1alpha1.ApplicationStatus{Health: appsv1alpha1.HealthHealthy, Ready: corev1.ConditionTrue}
	now := metav1.Now()
	there := map[record.ApplicationKey]*appsv1alpha1.Application{
		{Namespace: "shop", Name: "mysql"}:      {Status: healthy},
		{Namespace: "shop", Name: "going"}:      {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Status: healthy},
		{Namespace: "elsewhere", Name: "redis"}: {Status: healthy},
	}
	cases := map[string]struct {
		reason string
		app    *appsv1alpha1.Application
		blind  bool
		want   []DependencyView
	}{
		"None":       {reason: "Without dependencies there is nothing to say.", app: dependent(), want: []DependencyView{}},
		"Installed":  {reason: "There is an Application of that name.", app: dependent("mysql"), want: []DependencyView{{name: "mysql", status: &healthy}}},
		"Missing":    {reason: "There is none.", app: dependent("memcached"), want: []DependencyView{{name: "memcached"}}},
		"Elsewhere":  {reason: "One of another namespace is none.", app: dependent("redis"), want: []DependencyView{{name: "redis"}}},
		"Going":      {reason: "One that is being deleted will not be there.", app: dependent("going"), want: []DependencyView{{name: "going"}}},
		"NotKnown":   {reason: "What cannot be seen is not missing.", app: dependent("mysql"), blind: true, want: []DependencyView{{name: "mysql", unseen: true}}},
		"ItselfOnly": {reason: "The schema forbids it; an object that is older than the schema must not confuse us.", app: dependent("wordpress"), want: []DependencyView{}},
		"Twice":      {reason: "The status is a map by name.", app: dependent("mysql", "mysql"), want: []DependencyView{{name: "mysql", status: &healthy}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := BuildDependencies(tc.app, !tc.blind, func(key record.ApplicationKey) *appsv1alpha1.Application { return there[key] })
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(DependencyView{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConcernsDependents(t *testing.T) {
	now := metav1.Now()
	base := func(modify func(*appsv1alpha1.Application)) *appsv1alpha1.Application {
		app := dependent("mysql")
		app.Status = appsv1alpha1.ApplicationStatus{Health: appsv1alpha1.HealthHealthy, Ready: corev1.ConditionTrue}
		if modify != nil {
			modify(app)
		}
		return app
	}
	cases := map[string]struct {
		reason        string
		before, after *appsv1alpha1.Application
		want          bool
	}{
		"Comes":   {reason: "The dependency is installed now.", after: base(nil), want: true},
		"Goes":    {reason: "It is not installed any more.", before: base(nil), want: true},
		"Nothing": {reason: "There is nothing to tell.", want: false},
		"Deleted": {reason: "It begins to go.", before: base(nil), want: true,
			after: base(func(a *appsv1alpha1.Application) { a.DeletionTimestamp = &now })},
		"Recreated": {reason: "It was deleted and created again.", before: base(nil), want: true,
			after: base(func(a *appsv1alpha1.Application) { a.UID = "2" })},
		"Health": {reason: "Dependents show it.", before: base(nil), want: true,
			after: base(func(a *appsv1alpha1.Application) { a.Status.Health = appsv1alpha1.HealthDegraded })},
		"Ready": {reason: "Dependents show it.", before: base(nil), want: true,
			after: base(func(a *appsv1alpha1.Application) { a.Status.Ready = corev1.ConditionFalse })},
		"Message": {reason: "Dependents do not show it; they must not be looked at for it.", before: base(nil), want: false,
			after: base(func(a *appsv1alpha1.Application) { a.Status.Message, a.Generation = "x", 7 })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ConcernsDependents(tc.before, tc.after); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
