// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestArbiter(t *testing.T) {
	a, b := Key{"capi", "ns", "a"}, Key{"kubeconfig", "ns", "b"}
	type ask struct {
		key             Key
		object          types.UID
		uid, identifier string
	}
	cases := map[string]struct {
		reason string
		pins   map[Key]Pin
		before []ask
		ask    ask
		want   ruling
	}{
		"First":       {reason: "No cluster holds it.", ask: ask{a, "o1", "u1", "u1"}, want: ruling{Verdict: verdictGranted}},
		"Again":       {reason: "A claim that was granted is granted again.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{a, "o1", "u1", "u1"}, want: ruling{Verdict: verdictGranted}},
		"Duplicate":   {reason: "The first holds the cluster.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{b, "o2", "u1", "other"}, want: ruling{Verdict: verdictDuplicate, Holder: a, SameCluster: true}},
		"Identifier":  {reason: "The first holds the identifier.", before: []ask{{a, "o1", "u1", "id"}}, ask: ask{b, "o2", "u2", "id"}, want: ruling{Verdict: verdictDuplicate, Holder: a}},
		"UIDAsName":   {reason: "An identifier that is another's UID is that other's identifier.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{b, "o2", "u2", "u1"}, want: ruling{Verdict: verdictDuplicate, Holder: a}},
		"NewName":     {reason: "A holder may take another identifier.", before: []ask{{a, "o1", "u1", "id"}}, ask: ask{a, "o1", "u1", "id2"}, want: ruling{Verdict: verdictGranted}},
		"OldNameFree": {reason: "And frees the old one.", before: []ask{{a, "o1", "u1", "id"}, {a, "o1", "u1", "id2"}}, ask: ask{b, "o2", "u2", "id"}, want: ruling{Verdict: verdictGranted}},
		"Changed":     {reason: "A name does not come to mean another cluster.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{a, "o1", "u2", "u2"}, want: ruling{Verdict: verdictIdentityChanged}},
		"NewObject":   {reason: "A new object of that name may lead elsewhere.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{a, "o2", "u2", "u2"}, want: ruling{Verdict: verdictGranted}},
		"Hub":         {reason: "The hub is no workload cluster.", ask: ask{a, "o1", "hub", "x"}, want: ruling{Verdict: verdictHub}},
		"Pinned":      {reason: "A pin holds before its enrolment is connected.", pins: map[Key]Pin{a: {UID: "u1"}}, ask: ask{b, "o2", "u1", "x"}, want: ruling{Verdict: verdictDuplicate, Holder: a, Pinned: true, SameCluster: true}},
		"PinnedSame":  {reason: "The pinned one gets what it had.", pins: map[Key]Pin{a: {UID: "u1", Identifier: "id"}}, ask: ask{a, "o1", "u1", "id"}, want: ruling{Verdict: verdictGranted}},
		"PinnedOther": {reason: "A restart is no way to another cluster.", pins: map[Key]Pin{a: {UID: "u1"}}, ask: ask{a, "o1", "u2", "u2"}, want: ruling{Verdict: verdictIdentityChanged}},
		"PinnedOld":   {reason: "The pin of an earlier object does not count.", pins: map[Key]Pin{a: {UID: "u1", ObjectUID: "o0"}}, ask: ask{a, "o1", "u2", "u2"}, want: ruling{Verdict: verdictGranted}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ar := newArbiter()
			ar.hubUID = "hub"
			for k, p := range tc.pins {
				ar.pin(k, p)
			}
			for _, q := range tc.before {
				if got := ar.claim(q.key, q.object, q.uid, q.identifier); got.Verdict != verdictGranted {
					t.Fatalf("claim %v: %v", q, got)
				}
			}
			got := ar.claim(tc.ask.key, tc.ask.object, tc.ask.uid, tc.ask.identifier)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestArbiterReleaseFreesEverything(t *testing.T) {
	a, b := Key{"capi", "ns", "a"}, Key{"capi", "ns", "b"}
	ar := newArbiter()
	ar.claim(a, "o1", "u1", "id")
	ar.claim(b, "o2", "u1", "other")
	if freed := ar.release(a); !slices.Equal(freed, []Key{b}) || ar.release(a) != nil {
		t.Errorf("release: want what was refused because of it, once; got %v", freed)
	}
	if got := ar.claim(b, "o2", "u1", "id"); got.Verdict != verdictGranted {
		t.Errorf("after the release: want Granted, got %v", got)
	}
	if k, ok := ar.holder("id"); !ok || k != b {
		t.Errorf("Holder: want %v, got %v %t", b, k, ok)
	}
}

func TestArbiterNamesThoseWhoWereRefusedBecauseOfWhatIsFree(t *testing.T) {
	a, b, c := Key{"capi", "ns", "a"}, Key{"capi", "ns", "b"}, Key{"capi", "ns", "c"}
	type ask struct {
		key                     Key
		object                  types.UID
		uid, identifier, reason string
		freed                   []Key
	}
	ar := newArbiter()
	for _, q := range []ask{
		{a, "o1", "u1", "id", "The first holds both.", nil},
		{b, "o2", "u2", "id", "Refused, it waits.", nil},
		{c, "o3", "u1", "c", "So does one that leads to the same cluster.", nil},
		{c, "o3", "u3", "c", "Until it leads elsewhere.", nil},
		{a, "o1", "u1", "id", "To claim again frees nothing.", nil},
		{a, "o1", "u1", "id2", "Another identifier frees the old one.", []Key{b}},
		{b, "o2", "u2", "id2", "Refused again.", nil},
		{a, "o9", "u3", "x", "A new object of the name gives up what the old one held, although it is refused itself.", []Key{b}},
	} {
		if got := ar.claim(q.key, q.object, q.uid, q.identifier); !slices.Equal(got.Freed, q.freed) {
			t.Errorf("%s Claim of %s: want %v to be freed, got %v", q.reason, q.key, q.freed, got.Freed)
		}
	}
	if freed := ar.release(c); !slices.Equal(freed, []Key{a}) {
		t.Errorf("want the one that waits for it, got %v", freed)
	}
	if len(ar.refused) != 0 || len(ar.waitsFor) != 0 {
		t.Errorf("want no claim to wait any more, got %v %v", ar.refused, ar.waitsFor)
	}
}
