// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestWasCreatedWithin(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason string
		at     string
		want   bool
	}{
		"Now":       {reason: "It was created just now.", at: "2026-03-04T05:06:07Z", want: true},
		"Recently":  {reason: "It was created four minutes ago.", at: "2026-03-04T05:02:07Z", want: true},
		"OtherZone": {reason: "The time is the same in another zone.", at: "2026-03-04T06:02:07+01:00", want: true},
		"Skewed":    {reason: "The clock of another replica may be ahead.", at: "2026-03-04T05:07:07Z", want: true},
		"Old":       {reason: "It is older than that, as one that was restored from a backup.", at: "2026-03-04T05:01:07Z"},
		"Future":    {reason: "An object is not created in the future.", at: "2027-03-04T05:01:07Z"},
		"Garbage":   {reason: "Another client wrote it.", at: "yesterday"},
		"Changed":   {reason: "The next change of its claim removed the note."},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{}}
			if tc.at != "" {
				obj.SetAnnotations(map[string]string{fleetv1alpha1.CreatedAtAnnotation: tc.at})
			}
			if got := WasCreatedWithin(obj, now, 5*time.Minute); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	MarkCreated(obj, now.In(time.FixedZone("elsewhere", 3600)))
	if !WasCreatedWithin(obj, now, time.Second) {
		t.Errorf("want what is marked now to be created now, got %v", obj.GetAnnotations())
	}
}
