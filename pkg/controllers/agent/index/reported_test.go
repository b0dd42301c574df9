// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestReported(t *testing.T) {
	version := func(of types.UID, rv string) Version { return Version{UID: of, ResourceVersion: rv} }
	claim, hub := func(rv string) Version { return version("claim", rv) }, func(rv string) Version { return version("hub", rv) }
	for name, tc := range map[string]struct {
		reason   string
		reported []Version
		wrote    []Version
		want     []Version
	}{
		"Nothing":   {reason: "No change was reported."},
		"Own":       {reason: "What was written needs no other look.", reported: []Version{claim("5"), hub("7")}, wrote: []Version{version("claim", "5"), version("hub", "7")}},
		"NotYet":    {reason: "What was written and not reported is an echo later.", wrote: []Version{version("claim", "5")}},
		"Another's": {reason: "A change of another client does.", reported: []Version{claim("5")}, want: []Version{claim("5")}},
		"Between": {
			reason: "A write over another client's change does not hide that change.", reported: []Version{claim("4"), claim("5")}, wrote: []Version{version("claim", "5")},
			want: []Version{claim("4")},
		},
		"After": {
			reason: "Nor does it hide what came afterwards.", reported: []Version{hub("7"), hub("8")}, wrote: []Version{version("hub", "7")}, want: []Version{hub("8")},
		},
		"OtherCluster": {
			reason:   "Resource versions of two API servers have nothing to do with each other.",
			reported: []Version{claim("7")}, wrote: []Version{version("hub", "7")}, want: []Version{claim("7")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, req := &Reported{}, multicluster.ObjectRequest{ClusterName: "w1"}
			var queued []Version
			hold := func(req multicluster.ObjectRequest, v Version) bool {
				return r.Hold(req, v, func() { queued = append(queued, v) })
			}
			if hold(req, claim("1")) {
				t.Error("A claim that is not reconciled is queued at once.")
			}
			r.Begin(req)
			for _, report := range tc.reported {
				if !hold(req, report) {
					t.Error("What is reported meanwhile waits.")
				}
			}
			if hold(multicluster.ObjectRequest{ClusterName: "w2"}, claim("1")) {
				t.Error("Another claim does not wait.")
			}
			for _, queue := range r.End(req, tc.wrote) {
				queue()
			}
			if diff := cmp.Diff(tc.want, queued); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if hold(req, claim("1")) || len(r.waiting) != 0 {
				t.Error("Nothing is left of a reconcile that has ended.")
			}
		})
	}
}

func TestReportedIsBounded(t *testing.T) {
	r, req := &Reported{}, multicluster.ObjectRequest{ClusterName: "w1"}
	r.Begin(req)
	for i := range maxReported {
		if !r.Hold(req, Version{ResourceVersion: fmt.Sprint(i)}, nil) {
			t.Fatalf("want %d reports to wait, got %d", maxReported, i)
		}
	}
	if r.Hold(req, Version{}, nil) {
		t.Error("want a claim that changes all the time to be queued, and to take no more memory")
	}
}

// TestReportedOfManyClaims is for the race detector: watches report, and reconciles begin and end.
func TestReportedOfManyClaims(t *testing.T) {
	r := &Reported{}
	var group sync.WaitGroup
	for i := range 4 {
		req := multicluster.ObjectRequest{ClusterName: "w1"}
		req.Name = fmt.Sprint(i)
		group.Go(func() {
			for range 100 {
				r.Begin(req)
				r.End(req, nil)
			}
		})
		group.Go(func() {
			for range 100 {
				r.Hold(req, Version{}, nil)
			}
		})
	}
	group.Wait()
	if len(r.waiting) != 0 {
		t.Errorf("want nothing to wait, got %d", len(r.waiting))
	}
}
