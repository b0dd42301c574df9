// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason  string
		args    []string
		attacks int
		fails   bool
	}{
		"Default":  {reason: "Unless others are chosen, there are twenty-four.", attacks: 24},
		"Chosen":   {reason: "An attack is enrolled once.", args: []string{"--attacks=drip,silent,drip"}, attacks: 2},
		"Unknown":  {reason: "A typing error is not passed over.", args: []string{"--attacks=endless"}, fails: true},
		"Hub":      {reason: "The hub can be measured instead.", args: []string{"--hub=100"}, attacks: 24},
		"HubBelow": {reason: "Less than nothing cannot.", args: []string{"--hub=-1"}, fails: true},
		"NoRounds": {reason: "Nothing cannot be measured.", args: []string{"--rounds=0"}, fails: true},
		"Argument": {reason: "Nor is an argument that means nothing.", args: []string{"24"}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _, err := parse(tc.args, io.Discard)
			if (err != nil) != tc.fails || len(s.attacks) != tc.attacks {
				t.Errorf("%s got %d attacks, %v", tc.reason, len(s.attacks), err)
			}
		})
	}
}

func TestWrong(t *testing.T) {
	profileOf := func(conditions ...condition) *profile {
		p := &profile{}
		p.Status.Conditions = conditions
		return p
	}
	connected := condition{Type: "Connected", Status: "True", Reason: "Connected"}
	connecting := condition{Type: "Connected", Status: "False", Reason: "Connecting"}
	refused := condition{Type: "WithinLimits", Status: "False", Reason: "AnswerRefused"}
	unknown := condition{Type: "KindsSynced", Status: "Unknown", Reason: "NotConnected"}
	lost := condition{Type: "Connected", Status: "False", Reason: "DialError"}
	cases := map[string]struct {
		reason  string
		profile *profile
		want    []condition
	}{
		"Nothing":    {"A cluster without a profile says nothing.", nil, nil},
		"Connected":  {"Where nothing is wrong, nothing is said.", profileOf(connected), nil},
		"Connecting": {"That it is tried is not what is wrong with it.", profileOf(connecting), nil},
		"Refused":    {"What is wrong is said.", profileOf(connected, refused), []condition{refused}},
		"Lost":       {"What is not known is not wrong.", profileOf(lost, unknown), []condition{lost}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.profile.wrong()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRender(t *testing.T) {
	s, _, err := parse([]string{"--attacks=drip,silent"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	of := func(ms ...int) (d []time.Duration) {
		for _, m := range ms {
			d = append(d, time.Duration(m)*time.Millisecond)
		}
		return d
	}
	r := result{
		before: rest{resident: 60 << 20, goroutines: 100}, after: rest{resident: 70 << 20, goroutines: 100},
		without:   []phase{{up: of(20), back: of(10), peak: 80 << 20, processor: time.Second, took: 10 * time.Second}},
		enrolling: []phase{{up: of(60), back: of(40), peak: 100 << 20, processor: 5 * time.Second, servers: 3 * time.Second, took: 10 * time.Second}},
		with:      []phase{{up: of(30), back: of(20), peak: 90 << 20, processor: 2 * time.Second, took: 10 * time.Second}},
		peak:      []int64{101 << 20}, said: []time.Duration{190 * time.Second},
		conditions: map[string][]condition{
			"drip":   {{Type: "KindsSynced", Status: "False", Reason: "ListUnfinished"}, {Type: "WithinLimits", Status: "False", Reason: "AnswerRefused"}},
			"silent": nil,
		},
	}
	got := render(r, s, "a machine")
	for _, line := range []string{
		"| 1 | none | 20 ms | 20 ms | 10 ms | 10 ms | 10% | 0% | 80 MiB |",
		"| 1 | just enrolled | 60 ms | 60 ms | 40 ms | 40 ms | 50% | 30% | 100 MiB |",
		"| 1 | after 3m10s | 30 ms | 30 ms | 20 ms | 20 ms | 20% | 0% | 90 MiB |",
		"| ratio | just enrolled | 3.00 | 3.00 | 4.00 | 4.00 |  |  |  |",
		"| ratio | later | 1.50 | 1.50 | 2.00 | 2.00 |  |  |  |",
		"| resident | 60 MiB | 101 MiB | 21 MiB | 70 MiB |",
		"| drip | KindsSynced ListUnfinished, WithinLimits AnswerRefused |",
		"| silent | none |",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("the tables lack the line\n%s\nin\n%s", line, got)
		}
	}
}
