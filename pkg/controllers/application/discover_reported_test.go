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
	p := &pass{key: record.ApplicationKey{Namespace: "x", Name: "shop"}, app: app, leftOut: []record.Mark{"part-of//shop"}}
	p.discover()
	if len(p.discovered) != 1 || p.discovered[0].Unseen == nil || p.discovered[0].Unseen.Reason != appsv1alpha1.ReasonTooManyDiscovered || !p.undiscovered {
		t.Errorf("want one entry that says so, got %+v", p.discovered)
	}
}
