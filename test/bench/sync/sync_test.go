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
		objects  []int
		fails    bool
	}{
		"Default":     {reason: "Without flags, everything is measured.", clusters: []int{1, 5, 20}, objects: []int{300, 1000, 5000}},
		"Subset":      {reason: "The fleet grows, so numbers are put in order.", args: []string{"--clusters=5,1,5", "--objects", "300"}, clusters: []int{1, 5}, objects: []int{300}},
		"Zero":        {reason: "Nothing cannot be measured.", args: []string{"--objects=0"}, fails: true},
		"NoNumber":    {reason: "A typing error is not passed over.", args: []string{"--clusters=one"}, fails: true},
		"Argument":    {reason: "Nor is an argument that means nothing.", args: []string{"300"}, fails: true},
		"NoCRDs":      {reason: "The peer cannot run without its kinds.", args: []string{"--konnector=k"}, fails: true},
		"NoRate":      {reason: "A pace of nothing never ends.", args: []string{"--rate=0"}, fails: true},
		"NoClaim":     {reason: "Nor are latencies of no claim.", args: []string{"--rate=1", "--paced=500ms"}, fails: true},
		"NoTurn":      {reason: "Nor is anything measured in no turn.", args: []string{"--turns=0"}, fails: true},
		"UnknownFlag": {reason: "A flag that does not exist is an error.", args: []string{"--cluster=1"}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _, err := parse(tc.args, io.Discard)
			if (err != nil) != tc.fails {
				t.Fatalf("%s got error %v", tc.reason, err)
			}
			if diff := cmp.Diff([][]int{tc.clusters, tc.objects}, [][]int{s.clusters, s.objects}); diff != "" && !tc.fails {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestScenarios(t *testing.T) {
	s := settings{objects: []int{300, 1000}, konnector: "k", lifted: "l"}
	want := []scenario{
		{subject: masthead, clusters: 5, objects: 300},
		{subject: masthead, clusters: 5, objects: 1000, withLatency: true},
		{subject: lifted, clusters: 5, objects: 300},
		{subject: lifted, clusters: 5, objects: 1000, withLatency: true},
		{subject: shipped, clusters: 5, objects: 300},
	}
	if diff := cmp.Diff(want, s.scenarios(5), cmp.AllowUnexported(scenario{})); diff != "" {
		t.Errorf("Each program carries each number once, latencies are measured once for each, and what is throttled to five a second is "+
			"measured with the smallest number only.\n-want, +got:\n%s", diff)
	}
	s = settings{objects: []int{10}}
	want = []scenario{{subject: masthead, clusters: 1, objects: 10, withLatency: true}}
	if diff := cmp.Diff(want, s.scenarios(1), cmp.AllowUnexported(scenario{})); diff != "" {
		t.Errorf("Without the peer there is Masthead alone, and latencies are measured with what there is.\n-want, +got:\n%s", diff)
	}
}

func TestTurns(t *testing.T) {
	s := settings{objects: []int{10}, lifted: "l", turns: 3}
	var got []string
	for _, sc := range s.inTurn(1) {
		got = append(got, sc.subject)
	}
	want := []string{masthead, lifted, lifted, masthead, masthead, lifted}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Neither program always finds the API servers that are warmer.\n-want, +got:\n%s", diff)
	}
}

func TestRender(t *testing.T) {
	work := func(n int) auditlog.Counts { return auditlog.Counts{{Verb: "patch", Resource: "widgets"}: n} }
	results := []result{
		{
			scenario: scenario{subject: masthead, clusters: 1, objects: 100, withLatency: true},
			rest:     process.Usage{Resident: 50 << 20}, settled: process.Usage{Resident: 40 << 20}, creating: time.Second, up: 2 * time.Second, back: 4 * time.Second,
			onWorkloads: work(200), onHub: work(100), processor: 100 * time.Millisecond, peak: 64 << 20,
			paced: &pacedResult{
				objects: 1, up: []time.Duration{time.Millisecond}, back: []time.Duration{2 * time.Millisecond}, onWorkloads: work(2), onHub: work(1),
				processor: 4 * time.Millisecond, peak: 70 << 20,
			},
			idle: &idleResult{duration: 30 * time.Second, requests: auditlog.Counts{{Verb: "update", Resource: "leases"}: 15}, inUse: process.InUse{Heap: 9 << 20, Stacks: 1 << 20}},
		},
		{
			scenario: scenario{subject: masthead, clusters: 3, objects: 100, withLatency: true},
			rest:     process.Usage{Resident: 51 << 20}, settled: process.Usage{Resident: 44 << 20},
			idle: &idleResult{inUse: process.InUse{Heap: 10 << 20, Stacks: 2 << 20}},
		},
		{scenario: scenario{subject: masthead, clusters: 5, objects: 100, withLatency: true}, rest: process.Usage{Resident: 52 << 20}, problem: "it takes too long"},
	}
	got := render(results, "a machine", settings{rate: 50})
	for _, line := range []string{
		"a machine.",
		"| Masthead | 1 | 100 | 100 | 50 | 25 | 2.00 + 1.00 = 3.00 | 1.0 ms | 64 MiB |",
		"| Masthead | 5 | 100 | did not finish |  |  |  |  |  |",
		"| Masthead | 1 | 1.0 ms | 1.0 ms | 1.0 ms | 2.0 ms | 2.0 ms | 2.0 ms | 2.00 + 1.00 = 3.00 | 4.0 ms | 70 MiB |",
		"| Masthead | 1 | 50 MiB |  | 40 MiB |  | 10.0 MiB |  | 30s | 0 | 0 | 15 | 0 |",
		"| Masthead | 3 | 51 MiB | 0.50 MiB | 44 MiB | 2.00 MiB | 12.0 MiB | 1.00 MiB | 0s | 0 | 0 | 0 | 0 |",
		"| Masthead | 5 | 52 MiB | 0.50 MiB |  |  |  |  |  |  |  |  |  |",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("the tables lack the line\n%s\nin\n%s", line, got)
		}
	}
}
