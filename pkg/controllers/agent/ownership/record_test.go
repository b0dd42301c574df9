// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestGetRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, value string
		shown         bool // whether the claim shows a condition of Crossplane's
		want          Record
		recorded      bool
	}{
		"None":      {reason: "A claim that was never pushed records nothing."},
		"Own":       {reason: "What was recorded for this claim counts.", value: "bar/hub-uid/claim-uid", want: Record{"bar", "hub-uid"}, recorded: true},
		"Copied":    {reason: "What was recorded for another claim does not.", value: "bar/hub-uid/other-uid"},
		"Short":     {reason: "A record that does not say for which claim it is counts for none.", value: "bar/hub-uid"},
		"Long":      {reason: "A namespace has no slash.", value: "bar/x/hub-uid/claim-uid"},
		"Place":     {reason: "It is where the object is about to be.", value: "bar//claim-uid", want: Record{Namespace: "bar"}, recorded: true},
		"Elses":     {reason: "The status of a copy says nothing of it.", value: "bar//other-uid", shown: true},
		"Garbage":   {reason: "Text that means nothing records nothing.", value: "///"},
		"Namespace": {reason: "So does an object without a namespace.", value: "/hub-uid/claim-uid"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := aClaim(tc.value, tc.shown)
			if got, recorded := GetRecord(claim); got != tc.want || recorded != tc.recorded {
				t.Errorf("%s want %v (%t), got %v (%t)", tc.reason, tc.want, tc.recorded, got, recorded)
			}
		})
	}
}

// aClaim records something, and may show a condition of Crossplane's.
func aClaim(record string, shown bool) *unstructured.Unstructured {
	claim := &unstructured.Unstructured{}
	claim.SetUID("claim-uid")
	if record != "" {
		SetRecord(claim, record)
	}
	if shown {
		_ = unstructured.SetNestedSlice(claim.Object, []any{map[string]any{"type": "Ready", "status": "False"}}, "status", "conditions")
	}
	return claim
}

func TestAnnouncement(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, record string
		shown          bool
		want           string
	}{
		"New":       {reason: "It is the place where the object is about to be.", want: "bar//claim-uid"},
		"Copied":    {reason: "What another claim records counts for nothing.", record: "bar/hub-uid/other-uid", want: "bar//claim-uid"},
		"Elsewhere": {reason: "Nothing came of what was announced before.", record: "foo//claim-uid", want: "bar//claim-uid"},
		"Announced": {reason: "It was said.", record: "bar//claim-uid"},
		"Recorded":  {reason: "The object is known.", record: "foo/hub-uid/claim-uid"},
		"Shown": {
			reason: "The status is about an object of before: it would say that what was announced is there.", shown: true,
		},
		"Lost": {reason: "An object that was announced and lost stays recorded.", record: "foo//claim-uid", shown: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Announcement(aClaim(tc.record, tc.shown), "bar"); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestBelongs is about an object in the namespace foo of the hub.
func TestBelongs(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, record, names string
		shown, want           bool
	}{
		"Nothing":  {reason: "Any object can name any source."},
		"Guessed":  {reason: "Another UID is that of another claim.", names: "x"},
		"Created":  {reason: "The agent created it for this claim.", names: "claim-uid", want: true},
		"Recorded": {reason: "The claim had an object there, and a restored one may name no claim.", record: "foo/hub-uid/claim-uid", want: true},
		"Shown":    {reason: "As its conditions say.", record: "foo//claim-uid", shown: true, want: true},
		"Announced": {
			reason: "Nothing says that an object of the claim was ever there.", record: "foo//claim-uid",
		},
		"Copied":   {reason: "The claim had its object elsewhere.", record: "bar/hub-uid/claim-uid", names: "claim-uid"},
		"Restored": {reason: "The claim is restored from the one for which it was created.", record: "foo//before", names: "before", want: true},
		"Others":   {reason: "It is restored from another one.", record: "foo//before", names: "x"},
		"NamesNone": {
			reason: "A restored claim is no more credulous than another.", record: "foo//before", shown: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.ObjectMeta{Namespace: "foo", Annotations: map[string]string{fleetv1alpha1.SourceClaimUIDAnnotation: tc.names}}
			if got := Belongs(obj, aClaim(tc.record, tc.shown)); got != tc.want {
				t.Errorf("%s got %t", tc.reason, got)
			}
		})
	}
}

func TestRecords(t *testing.T) {
	hub := &metav1.ObjectMeta{Namespace: "bar", UID: "hub-uid"}
	for name, tc := range map[string]struct {
		reason, record, consent string
		shown, want             bool
	}{
		"None":      {reason: "It records nothing."},
		"Own":       {reason: "It is this object.", record: "bar/hub-uid/claim-uid", want: true},
		"Another":   {reason: "It is another one.", record: "bar/other/claim-uid"},
		"Announced": {reason: "Nothing says that the object is there.", record: "bar//claim-uid"},
		"Shown":     {reason: "The status does.", record: "bar//claim-uid", shown: true, want: true},
		"Elsewhere": {reason: "It is about another place.", record: "foo//claim-uid", shown: true},
		"Spent": {
			reason: "The owner had another object in place of the first one, and the consent is to be none to the next loss.",
			record: "bar//claim-uid", consent: "claim-uid", shown: true,
		},
		"AnothersConsent": {reason: "That is no consent to anything.", record: "bar//claim-uid", consent: "x", shown: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := aClaim(tc.record, tc.shown)
			if tc.consent != "" {
				annotations := claim.GetAnnotations()
				annotations[fleetv1alpha1.RecreateAnnotation] = tc.consent
				claim.SetAnnotations(annotations)
			}
			if got := Records(claim, hub); got != tc.want {
				t.Errorf("%s got %t", tc.reason, got)
			}
		})
	}
}
