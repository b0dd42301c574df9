// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"slices"
	"testing"
	"time"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// TestRefusedImportIsLookedAtSeldom: an import whose credentials are refused was looked at every 20 seconds, for ever.
func TestRefusedImportIsLookedAtSeldom(t *testing.T) {
	w := newAccountWorld(t)
	w.rotates(ofSource, "false")
	want := []time.Duration{retry, 2 * retry, 4 * retry, 8 * retry, resync, resync}
	var got []time.Duration
	for range want {
		p, reason := w.look()
		if reason != fleetv1alpha1.ReasonCredentialsNotAllowed {
			t.Fatalf("got %s", reason)
		}
		got = append(got, p.requeue())
		w.clock.Step(p.requeue() / 2)
		if again, _ := w.look(); again.requeue() > p.requeue()/2+time.Second {
			t.Errorf("want a look for another reason not to count, got the next in %s", again.requeue())
		}
		w.clock.Step(p.requeue() - p.requeue()/2)
	}
	if !slices.Equal(got, want) {
		t.Errorf("want looks after %v, got %v", want, got)
	}
	w.imp.Generation++
	if p, _ := w.look(); p.requeue() != retry {
		t.Errorf("want another spec to begin anew, got the next look in %s", p.requeue())
	}
	w.rotates("", "true")
	if p, reason := w.look(); reason != fleetv1alpha1.ReasonCredentialsNotFound || p.requeue() != retry {
		t.Errorf("want another reason to begin anew, got %s and the next look in %s", reason, p.requeue())
	}
	w.rotates(ofSource, "true")
	if _, reason := w.look(); reason != written || len(w.r.lacking.known) > 0 {
		t.Errorf("want nothing kept of an import that has credentials, got %s, %v", reason, w.r.lacking.known)
	}
}
