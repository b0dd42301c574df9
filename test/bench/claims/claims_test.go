// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func claimed(name, in, address string) object {
	var o object
	o.Metadata.Name, o.Metadata.Namespace, o.Status.Address = name, in, address
	return o
}

func TestTracker(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	tr := newTracker()
	var arrived []string
	tr.onArrival = func(name, in string) { arrived = append(arrived, in+"/"+name) }

	tr.create("a", nil, at(0))
	tr.create("b", nil, at(10))
	tr.inHub(claimed("stranger", "bar", ""), at(1))
	tr.inHub(claimed("a", "bar", ""), at(20))
	tr.inHub(claimed("a", "bar", "1.2.3.4"), at(50))
	tr.inHub(claimed("b", "bar", ""), at(40))
	tr.write("a", at(60))
	tr.write("b", at(70))
	tr.inWorkload(claimed("a", "default", ""), at(65))
	tr.inWorkload(claimed("a", "default", "1.2.3.4"), at(80))
	tr.inWorkload(claimed("a", "default", "1.2.3.4"), at(99))
	tr.inWorkload(claimed("b", "default", "1.2.3.4"), at(90))

	if diff := cmp.Diff([]string{"bar/a", "bar/b"}, arrived); diff != "" {
		t.Errorf("Each claim arrives once, and those of others do not count.\n-want, +got:\n%s", diff)
	}
	if a, r := tr.counts(); a != 2 || r != 2 {
		t.Errorf("A status is back when it holds what was written: got %d arrived and %d returned, want 2 and 2", a, r)
	}
	samples := tr.each()
	if got := Span(samples, Created, Arrived); got != 40*time.Millisecond {
		t.Errorf("Up is from the first creation to the last arrival: got %s, want 40ms", got)
	}
	if got := Span(samples, Written, Returned); got != 30*time.Millisecond {
		t.Errorf("Back is from the first status to the last return: got %s, want 30ms", got)
	}
	if got := Durations(map[string]Sample{"a": samples["a"]}, Written, Returned); got[0] != 20*time.Millisecond {
		t.Errorf("A latency is that of one claim: got %s, want 20ms", got[0])
	}
}

func TestKindIsOneForBoth(t *testing.T) {
	var crd map[string]any
	if err := json.Unmarshal([]byte(KindOfRun(3).CRD()), &crd); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(KindOfRun(3).Definition()), crd["spec"]); diff != "" {
		t.Errorf("What kube-bind is configured to export is what the hub serves.\n-want, +got:\n%s", diff)
	}
	for _, body := range [][]byte{KindOfRun(3).Claim("a"), Status()} {
		if !json.Valid(body) {
			t.Errorf("%s is not JSON", body)
		}
	}
}
