// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
)

func TestStraysOf(t *testing.T) {
	elsewhere := ownershiptest.InBar("db")
	elsewhere.Namespace = "elsewhere"
	for name, tc := range map[string]struct {
		reason string
		record string
		places []ownership.Place
		want   int
	}{
		"Own":          {reason: "The object that the claim records is none.", record: "bar/hub-uid/claim-uid", places: []ownership.Place{ownershiptest.InBar("db")}},
		"Elsewhere":    {reason: "One elsewhere is.", record: "bar/hub-uid/claim-uid", places: []ownership.Place{ownershiptest.InBar("db"), elsewhere}, want: 1},
		"OnlyThere":    {reason: "Also if the claim's own is gone.", record: "bar/hub-uid/claim-uid", places: []ownership.Place{elsewhere}, want: 1},
		"NotRecorded":  {reason: "A claim without a record cannot tell.", places: []ownership.Place{ownershiptest.InBar("db"), elsewhere}},
		"AnotherClaim": {reason: "Nor one that was copied with its record.", record: "bar/hub-uid/another", places: []ownership.Place{elsewhere}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &unstructured.Unstructured{Object: map[string]any{}}
			claim.SetUID("claim-uid")
			claim.SetAnnotations(map[string]string{fleetv1alpha1.HubObjectAnnotation: tc.record})
			if got := straysOf(claim, tc.places); got != tc.want {
				t.Errorf("%s want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
