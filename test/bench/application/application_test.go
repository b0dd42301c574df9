// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason  string
		args    []string
		apps    []int
		periods []time.Duration
		fails   bool
	}{
		"Default": {
			reason: "Without flags, everything is measured.", args: []string{"--peer=p"},
			apps: []int{10, 100, 1000, 5000}, periods: []time.Duration{120 * time.Second, 10 * time.Second},
		},
		"Subset": {
			reason: "Numbers are put in order, and periods the longest first; each counts once.",
			args:   []string{"--peer=p", "--apps=100,10,100", "--periods", "10s,60s"},
			apps:   []int{10, 100}, periods: []time.Duration{time.Minute, 10 * time.Second},
		},
		"WithoutPeer": {
			reason: "The peer can be left out, but not forgotten.", args: []string{"--peer=none", "--apps=1", "--periods=1s"},
			apps: []int{1}, periods: []time.Duration{time.Second},
		},
		"NoPeer":      {reason: "What the peer is must be said.", fails: true},
		"Zero":        {reason: "Nothing cannot be measured.", args: []string{"--peer=p", "--apps=0"}, fails: true},
		"NoNumber":    {reason: "A typing error is not passed over.", args: []string{"--peer=p", "--peer-apps=ten"}, fails: true},
		"HalfSecond":  {reason: "The peer's flag takes whole seconds.", args: []string{"--peer=p", "--periods=1500ms"}, fails: true},
		"Negative":    {reason: "Less than nothing is a typing error.", args: []string{"--peer=p", "--ballast=-1"}, fails: true},
		"Impatient":   {reason: "Without patience nothing is measured.", args: []string{"--peer=p", "--patience=0s"}, fails: true},
		"Argument":    {reason: "An argument that means nothing is a typing error.", args: []string{"--peer=p", "100"}, fails: true},
		"UnknownFlag": {reason: "A flag that does not exist is an error.", args: []string{"--peer=p", "--app=1"}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _, err := parse(tc.args, io.Discard)
			if (err != nil) != tc.fails {
				t.Fatalf("%s got error %v", tc.reason, err)
			}
			if tc.fails {
				return
			}
			if diff := cmp.Diff(tc.apps, s.apps); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.periods, s.periods); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestScenarios(t *testing.T) {
	long, short := 120*time.Second, 10*time.Second
	cases := map[string]struct {
		reason   string
		settings settings
		want     []scenario
	}{
		"All": {
			reason: "First the memory without unrelated objects; then each number with each program, the peer with its short period only " +
				"while that makes a difference, and not at all with numbers that are not requested of it.",
			settings: settings{apps: []int{10, 1000, 5000}, peerApps: []int{10, 1000}, periods: []time.Duration{long, short}, ballast: 9, peer: "p"},
			want: []scenario{
				{subject: masthead, apps: 10, memoryOnly: true},
				{subject: masthead, apps: 5000, memoryOnly: true},
				{subject: masthead, apps: 10, ballast: 9},
				{subject: peerName, period: long, apps: 10, ballast: 9},
				{subject: peerName, period: short, apps: 10, ballast: 9},
				{subject: masthead, apps: 1000, ballast: 9},
				{subject: peerName, period: long, apps: 1000, ballast: 9},
				{subject: masthead, apps: 5000, ballast: 9},
			},
		},
		"OneNumber": {
			reason:   "One number is the smallest and the largest, and is measured once.",
			settings: settings{apps: []int{10}, ballast: 9, peer: noPeer},
			want:     []scenario{{subject: masthead, apps: 10, memoryOnly: true}, {subject: masthead, apps: 10, ballast: 9}},
		},
		"WithoutBallast": {
			reason:   "Without unrelated objects there is nothing to compare with.",
			settings: settings{apps: []int{10, 20}, peerApps: []int{10}, periods: []time.Duration{long}, peer: noPeer},
			want:     []scenario{{subject: masthead, apps: 10}, {subject: masthead, apps: 20}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.settings.scenarios(), cmp.AllowUnexported(scenario{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPace(t *testing.T) {
	cases := map[string]struct {
		reason   string
		scenario scenario
		window   time.Duration
		rounds   int
		idle     time.Duration
	}{
		"Watches": {
			reason:   "Who watches has no period; few Applications are changed more than once.",
			scenario: scenario{subject: masthead, apps: 10}, window: minWindow, rounds: 3, idle: time.Minute,
		},
		"Many":   {reason: "With many, each is changed once at most.", scenario: scenario{subject: masthead, apps: 1000}, window: minWindow, rounds: 1, idle: time.Minute},
		"Uneven": {reason: "There are no fewer changes than are wanted.", scenario: scenario{subject: masthead, apps: 20}, window: minWindow, rounds: 2, idle: time.Minute},
		"LongPeriod": {
			reason:   "A change comes at any moment of the period, all of which is counted; a second round would take another period.",
			scenario: scenario{subject: peerName, period: 120 * time.Second, apps: 10}, window: 120 * time.Second, rounds: 1, idle: 120 * time.Second,
		},
		"ShortPeriod": {
			reason:   "A short period leaves time for as many changes as are wanted.",
			scenario: scenario{subject: peerName, period: 10 * time.Second, apps: 10}, window: 10 * time.Second, rounds: 3, idle: time.Minute,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.scenario.window(); got != tc.window {
				t.Errorf("%s got a window of %s, want %s", tc.reason, got, tc.window)
			}
			if got := tc.scenario.rounds(30); got != tc.rounds {
				t.Errorf("%s got %d rounds, want %d", tc.reason, got, tc.rounds)
			}
			if got := tc.scenario.idleFor(time.Minute); got != tc.idle {
				t.Errorf("%s got %s at idle, want %s", tc.reason, got, tc.idle)
			}
			if got := tc.scenario.idleFor(0); got != 0 {
				t.Errorf("Who does not want to measure at idle does not wait: got %s", got)
			}
		})
	}
}

func TestSet(t *testing.T) {
	s := set{run: 3, apps: 250}
	if diff := cmp.Diff([]string{"bench-3-0", "bench-3-1", "bench-3-2"}, s.namespaces()); diff != "" {
		t.Errorf("Two hundred and fifty Applications are in three namespaces of a hundred.\n-want, +got:\n%s", diff)
	}
	for i, want := range map[int]string{0: "bench-3-0", 99: "bench-3-0", 100: "bench-3-1", 249: "bench-3-2"} {
		if got := s.namespace(i); got != want {
			t.Errorf("Each Application is in a namespace that is created: the one with number %d is in %s, want %s", i, got, want)
		}
	}
}

func TestManifestsSayTheSame(t *testing.T) {
	for _, body := range [][]byte{
		(applicationKind{manifest: ourApplication}).application("a"), (applicationKind{manifest: theirApplication}).application("a"),
		deploymentStatus(true), deploymentStatus(false), components()[0].object("a"), components()[1].object("a"), components()[2].unrelated(7),
	} {
		if !json.Valid(body) {
			t.Errorf("%s is not JSON", body)
		}
	}
	var ours appsv1alpha1.Application
	if err := json.Unmarshal((applicationKind{manifest: ourApplication}).application("a"), &ours); err != nil {
		t.Fatal(err)
	}
	var theirs struct {
		Spec struct {
			ComponentKinds []struct{ Group, Kind string } `json:"componentKinds"`
		} `json:"spec"`
	}
	if err := json.Unmarshal((applicationKind{manifest: theirApplication}).application("a"), &theirs); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, c := range ours.Spec.Components {
		kinds[c.Kind] = c.Group
	}
	if len(kinds) != len(components()) || len(theirs.Spec.ComponentKinds) != len(kinds) {
		t.Fatalf("Both Applications have all components: got %v and %v", ours.Spec.Components, theirs.Spec.ComponentKinds)
	}
	for _, k := range theirs.Spec.ComponentKinds {
		if group, ok := kinds[k.Kind]; !ok || group != k.Group {
			t.Errorf("Both programs are configured with the same kinds: one of %s/%s, the other of %v", k.Group, k.Kind, kinds)
		}
	}
	for _, c := range components() {
		if _, ok := ours.Spec.Components["a-"+c.suffix]; !ok {
			t.Errorf("The Application does not name its component a-%s: %v", c.suffix, ours.Spec.Components)
		}
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func TestStates(t *testing.T) {
	cases := map[string]struct {
		reason       string
		ours, theirs string
		want         state
	}{
		"None": {reason: "Without a status nothing is known.", ours: `{}`, theirs: `{}`, want: state{namespace: "n", name: "a"}},
		"Some": {
			reason: "A status that does not tell of all components is not complete.",
			ours:   `{"components":[{"kind":"Deployment","installed":"True","health":"Healthy"},{"kind":"Service","installed":"Unknown"},{"kind":"ConfigMap","installed":"True"}]}`,
			theirs: `{"components":[{"kind":"Deployment","status":"Ready"},{"kind":"Service","status":"Ready"}]}`,
			want:   state{namespace: "n", name: "a", ready: true},
		},
		"NotReady": {
			reason: "It is complete also while the Deployment is not ready.",
			ours:   `{"components":[{"kind":"Deployment","installed":"True","health":"Progressing"},{"kind":"Service","installed":"True","health":"Healthy"},{"kind":"ConfigMap","installed":"True","health":"Healthy"}]}`,
			theirs: `{"components":[{"kind":"Deployment","status":"InProgress"},{"kind":"Service","status":"Ready"},{"kind":"ConfigMap","status":"Ready"}]}`,
			want:   state{namespace: "n", name: "a", complete: true},
		},
		"Ready": {
			reason: "What is ready is the Deployment, in any state of the others.",
			ours:   `{"components":[{"kind":"Deployment","installed":"True","health":"Healthy"},{"kind":"Service","installed":"True","health":"Progressing"},{"kind":"ConfigMap","installed":"True"}]}`,
			theirs: `{"components":[{"kind":"Deployment","status":"Ready"},{"kind":"Service","status":"InProgress"},{"kind":"ConfigMap","status":"Ready"}]}`,
			want:   state{namespace: "n", name: "a", complete: true, ready: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var ours ourObject
			var theirs theirObject
			decode(t, `{"metadata":{"namespace":"n","name":"a"},"status":`+tc.ours+`}`, &ours)
			decode(t, `{"metadata":{"namespace":"n","name":"a"},"status":`+tc.theirs+`}`, &theirs)
			for program, got := range map[string]state{masthead: ours.state(), peerName: theirs.state()} {
				if got != tc.want {
					t.Errorf("%s %s: got %+v, want %+v", tc.reason, program, got, tc.want)
				}
			}
		})
	}
}

func TestTracker(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tr := newTracker()
	tr.event(state{namespace: "n", name: "a"}, at)
	if got := tr.count(); got != 0 {
		t.Errorf("A status that is not complete does not count: got %d", got)
	}
	tr.event(state{namespace: "n", name: "a", complete: true}, at)
	tr.event(state{namespace: "n", name: "a", complete: true}, at)
	tr.event(state{namespace: "m", name: "a", complete: true}, at)
	if got := tr.count(); got != 2 {
		t.Errorf("Each Application counts once, and its name is that in its namespace: got %d, want 2", got)
	}
	running := make(chan struct{})
	if err := tr.wait(t.Context(), 2, time.Hour, running); err != nil {
		t.Errorf("There is nothing to wait for: %v", err)
	}

	seen := tr.expect(appKey{"n", "a"}, true)
	tr.event(state{namespace: "n", name: "a", complete: true}, at)
	tr.event(state{namespace: "m", name: "a", complete: true, ready: true}, at)
	tr.event(state{namespace: "n", name: "a", ready: true}, at)
	select {
	case <-seen:
		t.Error("A change is seen when the complete status of its own Application says so, and not before.")
	default:
	}
	tr.event(state{namespace: "n", name: "a", complete: true, ready: true}, at.Add(time.Second))
	tr.event(state{namespace: "n", name: "a", complete: true, ready: true}, at.Add(time.Minute))
	if got := <-seen; !got.Equal(at.Add(time.Second)) {
		t.Errorf("The first status that tells of it counts: got %s", got)
	}

	if err := tr.wait(t.Context(), 3, time.Nanosecond, running); !errors.Is(err, errSlow) {
		t.Errorf("Patience has an end: got %v", err)
	}
	close(running)
	if err := tr.wait(t.Context(), 3, time.Hour, running); err == nil || !strings.Contains(err.Error(), "2 of 3") {
		t.Errorf("Nothing comes from a program that has ended, and the error says how far it came: got %v", err)
	}
}
