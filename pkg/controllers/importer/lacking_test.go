// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"slices"
	"testing"
	"time"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
)

// TestRefusedImportIsReconciledRarely: an import whose credentials are refused was reconciled every 20 seconds, for
// ever.
func TestRefusedImportIsReconciledRarely(t *testing.T) {
	w := newAccountWorld(t)
	w.rotates(ofSource, "false")
	want := []time.Duration{scope.Retry, 2 * scope.Retry, 4 * scope.Retry, 8 * scope.Retry, scope.Resync, scope.Resync}
	var got []time.Duration
	for range want {
		p, reason := w.look()
		if reason != fleetv1alpha1.ReasonCredentialsNotAllowed {
			t.Fatalf("got %s", reason)
		}
		got = append(got, p.Requeue())
		w.clock.Step(p.Requeue() / 2)
		if again, _ := w.look(); again.Requeue() > p.Requeue()/2+time.Second {
			t.Errorf("want a look for another reason not to count, got the next in %s", again.Requeue())
		}
		w.clock.Step(p.Requeue() - p.Requeue()/2)
	}
	if !slices.Equal(got, want) {
		t.Errorf("want looks after %v, got %v", want, got)
	}
	w.imp.Generation++
	if p, _ := w.look(); p.Requeue() != scope.Retry {
		t.Errorf("want another spec to reset the interval, got the next look in %s", p.Requeue())
	}
	w.rotates("", "true")
	if p, reason := w.look(); reason != fleetv1alpha1.ReasonCredentialsNotFound || p.Requeue() != scope.Retry {
		t.Errorf("want another reason to reset the interval, got %s and the next look in %s", reason, p.Requeue())
	}
	w.rotates(ofSource, "true")
	if _, reason := w.look(); reason != written || len(w.r.lacking.known) > 0 {
		t.Errorf("want nothing kept of an import that has credentials, got %s, %v", reason, w.r.lacking.known)
	}
}
