// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/masthead-dev/masthead/test/bench/auditlog"
)

func TestRender(t *testing.T) {
	ms := func(n ...int) []time.Duration {
		var out []time.Duration
		for _, n := range n {
			out = append(out, time.Duration(n)*time.Millisecond)
		}
		return out
	}
	idle := auditlog.Counts{
		{Verb: "list", Resource: "services"}: 100, {Verb: "update", Resource: "services"}: 50,
		{Verb: "watch", Resource: "services"}: 3, {Verb: "get", Resource: "/readyz"}: 9,
	}
	ours := scenario{subject: masthead, apps: 10, ballast: 20000}
	many := scenario{subject: masthead, apps: 110, ballast: 20000}
	theirs := scenario{subject: peerName, period: 120 * time.Second, apps: 1000, ballast: 20000}
	results := []result{
		{scenario: scenario{subject: masthead, apps: 10, memoryOnly: true}, complete: 10, first: time.Second, resident: 60 << 20, heap: 10 << 20},
		{
			scenario: ours, complete: 10, first: 1500 * time.Millisecond, processor: 1230 * time.Millisecond, latencies: ms(40, 50, 60),
			requests: auditlog.Counts{{Verb: "patch", Resource: "services"}: 41},
			idle:     &idleResult{duration: time.Minute, processor: 500 * time.Millisecond, onWorkload: auditlog.Counts{}, onHub: auditlog.Counts{{Verb: "get", Resource: "secrets"}: 2}},
			resident: 70 << 20, heap: 20 << 20,
		},
		{scenario: many, complete: 110, first: 61 * time.Second, resident: 80 << 20, heap: 20<<20 + 300*1024},
		{
			scenario: theirs, complete: 400, first: 480 * time.Second, problem: "it takes too long",
			idle: &idleResult{duration: 2 * time.Minute, processor: time.Second, onWorkload: idle, onHub: auditlog.Counts{}},
		},
		{scenario: theirs, problem: "cannot start"},
	}
	q := question{title: "A case", right: "goes well"}
	answers := []answer{{question: q, by: map[string]string{masthead: "does", peerName: "does not"}}}
	got := render(results, answers, "a machine")
	for reason, line := range map[string]string{
		"The machine is named.": "a machine.",
		"The processor time and the requests are those for the first statuses; without many changes, the 99th percentile is the longest.": "| Masthead | 10 | 1.5 s | 1.23 s | 4.1 | 50 ms | 60 ms | 60 ms | 3 |",
		"A run that does not come to its end shows how far it came.":                                                                      "| kubernetes-sigs/application v0.8.3, period 120 s | 1000 | 400 of them after 480 s | 0.00 s | 0.0 |  |  |  |  |",
		"One that does not begin shows that.":                                                                                             "| kubernetes-sigs/application v0.8.3, period 120 s | 1000 | did not finish |  |  |  |  |  |  |",
		"What Masthead asks of the hub is its own figure.":                                                                                "| Masthead | 10 | 0 | 0 | 0 | 0.50 s | 2 | 60 s |",
		"Figures are those of a minute; probes are no work, and there is no hub for the peer.":                                            "| kubernetes-sigs/application v0.8.3, period 120 s | 1000 | 50 | 25 | 1.5 | 0.50 s |  | 120 s |",
		"Memory is shown without unrelated objects, too.":                                                                                 "| Masthead | 0 | 10 | 30 | 60 MiB | 10.0 MiB |  |",
		"A further component is what memory in use grew by, with the same unrelated objects: 300 KiB for 300.":                            "| Masthead | 20000 | 110 | 330 | 80 MiB | 20.3 MiB | 1.00 KiB |",
		"Each case has what should be beside what is.":                                                                                    "| A case | goes well | does | does not |",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("%s The tables lack the line\n%s\nin\n%s", reason, line, got)
		}
	}
	if strings.Contains(got, "| Masthead | 10 | 1.0 s |") {
		t.Error("A run that is about memory shows nothing else: without unrelated objects its other figures are not comparable.")
	}
}

func TestDescribe(t *testing.T) {
	all := map[string]question{}
	for _, q := range questions() {
		all[q.title] = q
	}
	find := func(part string) question {
		t.Helper()
		for title, q := range all {
			if strings.Contains(title, part) {
				return q
			}
		}
		t.Fatalf("there is no case about %q", part)
		return question{}
	}
	cases := map[string]struct {
		reason, about, want string
		outcome             outcome
	}{
		"Owned": {
			reason: "All that is owned is named.", about: "matchExpressions", want: "owns mine, stranger-1; well",
			outcome: outcome{owned: []string{"mine", "stranger-1"}, verdicts: map[string]string{"shop": "well"}},
		},
		"Unserved": {reason: "The status speaks for itself.", about: "does not serve", want: "well", outcome: outcome{verdicts: map[string]string{"shop": "well"}}},
		"Crash": {
			reason: "A crash comes first, and what has no status is said to have none.", about: "no reason",
			want: "the program crashes; the first: no status; the second: no status", outcome: outcome{ended: true, verdicts: map[string]string{}},
		},
		"Requests": {reason: "Requests are counted.", about: `"core"`, want: "well; 28 requests", outcome: outcome{requests: 28, verdicts: map[string]string{"shop": "well"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.outcome.describe(find(tc.about)); got != tc.want {
				t.Errorf("%s got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	var ours ourObject
	var theirs theirObject
	if got := ours.verdict() + theirs.verdict(); got != "" {
		t.Errorf("Before there is a status it says nothing: got %q", got)
	}
	decode(t, `{"status":{"observedGeneration":1,"health":"Unknown","componentsInstalled":"1/2","components":[`+
		`{"name":"a","health":"Unknown","reason":"KindNotServed"},{"name":"b","health":"Healthy","reason":"Current"}]}}`, &ours)
	if got, want := ours.verdict(), "health Unknown, 1/2 installed, KindNotServed"; got != want {
		t.Errorf("It names the reason of what is not healthy: got %q, want %q", got, want)
	}
	decode(t, `{"status":{"observedGeneration":1,"componentsReady":"0/0","conditions":[{"type":"Error","status":"False"},`+
		`{"type":"Ready","status":"True","message":"all components ready"}]}}`, &theirs)
	if got, want := theirs.verdict(), "Ready is True (all components ready), 0/0 ready"; got != want {
		t.Errorf("It is what the condition Ready says: got %q, want %q", got, want)
	}
}
