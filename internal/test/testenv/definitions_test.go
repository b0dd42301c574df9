// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStuck(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	cases := map[string]struct {
		reason   string
		deleted  *metav1.Time
		released string
		want     bool
	}{
		"NotDeleted":   {reason: "a definition that is not being deleted is left unchanged"},
		"Young":        {reason: "the API server is still at work", deleted: ago(releaseAfter - time.Second)},
		"Old":          {reason: "nothing happens any more", deleted: ago(releaseAfter), want: true},
		"JustReleased": {reason: "it has just been touched", deleted: ago(time.Minute), released: now.Add(-time.Second).Format(time.RFC3339)},
		"ReleasedLong": {reason: "that attempt failed too", deleted: ago(time.Minute), released: now.Add(-releaseAfter).Format(time.RFC3339), want: true},
		"NoTime":       {reason: "who knows when", deleted: ago(time.Minute), released: "yesterday", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crd := &metav1.PartialObjectMetadata{}
			crd.DeletionTimestamp = tc.deleted
			if tc.released != "" {
				crd.Annotations = map[string]string{releasedAnnotation: tc.released}
			}
			if got := stuck(crd, now); got != tc.want {
				t.Errorf("%s: stuck: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
