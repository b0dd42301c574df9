// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// Omissions are reported.
func TestMarksThatAreLeftOutAreReported(t *testing.T) {
	app := &appsv1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "shop"}}
	app.Spec.Discover = &appsv1alpha1.Discovery{Sources: []appsv1alpha1.DiscoverySource{{PartOf: "shop"}}}
	s := &scope{key: record.ApplicationKey{Namespace: "x", Name: "shop"}, app: app}
	d := s.discover(nil, sought{leftOut: []record.Mark{"part-of//shop"}})
	if len(d.views) != 1 || d.views[0].Unseen == nil || d.views[0].Unseen.Reason != appsv1alpha1.ReasonTooManyDiscovered || !d.undiscovered {
		t.Errorf("want one entry that says so, got %+v", d.views)
	}
}
