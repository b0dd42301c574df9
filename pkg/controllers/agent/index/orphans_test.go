// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
)

func TestIsStray(t *testing.T) {
	elsewhere := ownershiptest.InBar("db")
	elsewhere.Namespace = "elsewhere"
	for name, tc := range map[string]struct {
		reason string
		record string
		place  ownership.Place
		names  string // The UID of the claim that the object names.
		shown  bool   // Whether the claim shows a condition of Crossplane's.
		want   bool
	}{
		"Own":          {reason: "It is where the claim records it.", record: "bar//claim-uid", place: ownershiptest.InBar("db"), names: "claim-uid"},
		"Restored":     {reason: "An object that takes the place of a lost one may name an earlier claim.", record: "bar//claim-uid", place: ownershiptest.InBar("db"), names: "x"},
		"Elsewhere":    {reason: "It names the source only.", record: "bar//claim-uid", place: elsewhere, want: true},
		"Guessed":      {reason: "A UID that is not the claim's is as good as none.", record: "bar//claim-uid", place: elsewhere, names: "x", want: true},
		"Created":      {reason: "The agent created it, and the claim goes to another place now.", record: "bar//claim-uid", place: elsewhere, names: "claim-uid"},
		"Copied":       {reason: "The claim had another object, of which this is a copy.", record: "bar//claim-uid", shown: true, place: elsewhere, names: "claim-uid", want: true},
		"NotRecorded":  {reason: "The claim may take it over.", place: elsewhere},
		"AnotherClaim": {reason: "A record copied from another claim is none.", record: "bar//another", place: elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &unstructured.Unstructured{Object: map[string]any{}}
			claim.SetUID("claim-uid")
			claim.SetAnnotations(map[string]string{fleetv1alpha1.HubObjectAnnotation: tc.record})
			if tc.shown {
				_ = unstructured.SetNestedSlice(claim.Object, []any{map[string]any{"type": "Ready", "status": "True"}}, "status", "conditions")
			}
			obj := objectAt(tc.place, ownership.Source{Identifier: "w1", Namespace: "foo"})
			obj.SetAnnotations(map[string]string{fleetv1alpha1.SourceClaimUIDAnnotation: tc.names})
			if got := isStray(obj, claim); got != tc.want {
				t.Errorf("%s want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestWhatChangedBeforeItsWatchReportedItIsNoOrphan has the hub answer a creation, of which the watch only reports what
// became of it. Its source was counted until the process ended.
func TestWhatChangedBeforeItsWatchReportedItIsNoOrphan(t *testing.T) {
	us, place := ownership.Source{Identifier: "w1", Namespace: "foo"}, ownershiptest.InBar("db")
	created := objectAt(place, us)
	created.SetResourceVersion("1000")
	for name, tc := range map[string]struct {
		reason  string
		became  *unstructured.Unstructured
		orphans int
	}{
		"Created":  {reason: "It has no claim.", became: created, orphans: 1},
		"Released": {reason: "It names no source any more.", became: ownership.Released(created, us)},
		"Taken":    {reason: "It names another source.", became: objectAt(place, ownership.Source{Identifier: "w2", Namespace: "foo"})},
	} {
		t.Run(name, func(t *testing.T) {
			h, w := syncedHub(t), watchedCluster(t, "w1", place.Kind)
			h.Observe(place, created)
			became := tc.became.DeepCopy()
			became.SetResourceVersion("1001")
			h.Observe(place, became)
			if got, _ := (&orphans{hub: h}).count(w, us.Identifier); got != tc.orphans {
				t.Errorf("%s want %d orphans, got %d", tc.reason, tc.orphans, got)
			}
		})
	}
}
