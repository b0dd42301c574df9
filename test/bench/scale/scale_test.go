// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/bench/process"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason   string
		args     []string
		clusters []int
		fails    bool
	}{
		"Default":  {reason: "Without flags, up to a thousand are measured.", clusters: []int{10, 100, 1000}},
		"Chosen":   {reason: "The order is kept.", args: []string{"--clusters=3,2"}, clusters: []int{3, 2}},
		"One":      {reason: "What a further one takes cannot be said of one.", args: []string{"--clusters=1"}, fails: true},
		"NoNumber": {reason: "A typing error is not passed over.", args: []string{"--clusters=ten"}, fails: true},
		"NoRest":   {reason: "Nothing cannot be measured.", args: []string{"--rest=0"}, fails: true},
		"Argument": {reason: "Nor is an argument that means nothing.", args: []string{"10"}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _, err := parse(tc.args, io.Discard)
			if (err != nil) != tc.fails {
				t.Fatalf("%s got error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.clusters, s.clusters); diff != "" && !tc.fails {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRender(t *testing.T) {
	list := auditlog.Request{Verb: "list", Resource: "secrets"}
	patch := auditlog.Request{Verb: "patch", Resource: "events"}
	probe := auditlog.Request{Verb: "get", Resource: "/readyz"}
	before := requests{clusters: auditlog.Counts{list: 1}, hub: auditlog.Counts{}}
	after := requests{clusters: auditlog.Counts{list: 3, probe: 9}, hub: auditlog.Counts{patch: 1}}
	r := result{
		clusters: 3, connect: time.Second, reconnect: 2 * time.Second, further: 3 * time.Second, processor: 4 * time.Second,
		one:    rest{resident: 10 << 20, inUse: process.InUse{Heap: 1 << 20}, goroutines: 100, series: 1000},
		idle:   rest{resident: 14 << 20, inUse: process.InUse{Heap: 2 << 20}, goroutines: 180, series: 1090},
		rest:   rest{resident: 20 << 20, inUse: process.InUse{Heap: 5 << 20}, goroutines: 180, series: 1150},
		atRest: after.since(before), crash: after.since(requests{}),
	}
	for claims, want := range map[int]string{
		0: "| 3 | 1.0 s | 4.0 s | 14 MiB (2048 KiB each) | 2 MiB (512 KiB each) | 180 (40.0 each) " +
			"| 1090 (45.0 each) | 3 | 2.0 s | 1 | 3.0 s |",
		1: "| 14 MiB (2048 KiB each), with claims 20 MiB (2048.0 KiB each) | 2 MiB (512 KiB each), with claims 5 MiB (1024.0 KiB each) " +
			"| 180 (40.0 each), with claims 180 | 1090 (45.0 each), with claims 1150 |",
	} {
		if got := render([]result{r}, "m", settings{rest: 30 * time.Second, claims: claims}); !strings.Contains(got, want) {
			t.Errorf("A further cluster is what is more than with one, and probes do not count: want %s, got\n%s", want, got)
		}
	}
}
