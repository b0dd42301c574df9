// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"slices"
	"testing"
	"time"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
)

// TestRefusedImportIsReconciledRarely: an import whose credentials are refused was reconciled every 20 seconds, for
// ever.
func TestRefusedImportIsReconciledRarely(t *testing.T) {
	w := newAccountWorld(t)
	w.rotates(ofSource, "false")
	want := []time.Duration{workload.Retry, 2 * workload.Retry, 4 * workload.Retry, 8 * workload.Retry, workload.Resync, workload.Resync}
	var got []time.Duration
	for range want {
		p, reason := w.look()
		if reason != fleetv1alpha1.ReasonCredentialsNotAllowed {
			t.Fatalf("got %s", reason)
		}
		got = append(got, p.requeueAfter())
		w.clock.Step(p.requeueAfter() / 2)
		if again, _ := w.look(); again.requeueAfter() > p.requeueAfter()/2+time.Second {
			t.Errorf("want a look for another reason not to count, got the next in %s", again.requeueAfter())
		}
		w.clock.Step(p.requeueAfter() - p.requeueAfter()/2)
	}
	if !slices.Equal(got, want) {
		t.Errorf("want looks after %v, got %v", want, got)
	}
	w.imp.Generation++
	if p, _ := w.look(); p.requeueAfter() != workload.Retry {
		t.Errorf("want another spec to reset the interval, got the next look in %s", p.requeueAfter())
	}
	w.rotates("", "true")
	if p, reason := w.look(); reason != fleetv1alpha1.ReasonCredentialsNotFound || p.requeueAfter() != workload.Retry {
		t.Errorf("want another reason to reset the interval, got %s and the next look in %s", reason, p.requeueAfter())
	}
	w.rotates(ofSource, "true")
	if _, reason := w.look(); reason != written || len(w.r.lacking.known) > 0 {
		t.Errorf("want nothing kept of an import that has credentials, got %s, %v", reason, w.r.lacking.known)
	}
}
