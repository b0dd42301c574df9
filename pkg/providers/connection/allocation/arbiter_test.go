// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// key is like the keys of package connection.
type key struct{ Source, Namespace, Name string }

func (k key) String() string { return k.Source + "/" + k.Namespace + "/" + k.Name }

func TestArbiter(t *testing.T) {
	a, b := key{"capi", "ns", "a"}, key{"kubeconfig", "ns", "b"}
	type ask struct {
		key             key
		object          types.UID
		uid, identifier string
	}
	cases := map[string]struct {
		reason string
		pins   map[key]Claim
		before []ask
		ask    ask
		want   Ruling[key]
	}{
		"First":       {reason: "No cluster holds it.", ask: ask{a, "o1", "u1", "u1"}, want: Ruling[key]{Verdict: VerdictGranted}},
		"Again":       {reason: "A claim that was granted is granted again.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{a, "o1", "u1", "u1"}, want: Ruling[key]{Verdict: VerdictGranted}},
		"Duplicate":   {reason: "The first holds the cluster.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{b, "o2", "u1", "other"}, want: Ruling[key]{Verdict: VerdictDuplicate, Holder: a, SameCluster: true}},
		"Identifier":  {reason: "The first holds the identifier.", before: []ask{{a, "o1", "u1", "id"}}, ask: ask{b, "o2", "u2", "id"}, want: Ruling[key]{Verdict: VerdictDuplicate, Holder: a}},
		"UIDAsName":   {reason: "An identifier that is another's UID is that other's identifier.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{b, "o2", "u2", "u1"}, want: Ruling[key]{Verdict: VerdictDuplicate, Holder: a}},
		"NewName":     {reason: "A holder may take another identifier.", before: []ask{{a, "o1", "u1", "id"}}, ask: ask{a, "o1", "u1", "id2"}, want: Ruling[key]{Verdict: VerdictGranted}},
		"OldNameFree": {reason: "And frees the old one.", before: []ask{{a, "o1", "u1", "id"}, {a, "o1", "u1", "id2"}}, ask: ask{b, "o2", "u2", "id"}, want: Ruling[key]{Verdict: VerdictGranted}},
		"Changed":     {reason: "A name does not come to mean another cluster.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{a, "o1", "u2", "u2"}, want: Ruling[key]{Verdict: VerdictIdentityChanged}},
		"NewObject":   {reason: "A new object of that name may lead elsewhere.", before: []ask{{a, "o1", "u1", "u1"}}, ask: ask{a, "o2", "u2", "u2"}, want: Ruling[key]{Verdict: VerdictGranted}},
		"Hub":         {reason: "The hub is no workload cluster.", ask: ask{a, "o1", "hub", "x"}, want: Ruling[key]{Verdict: VerdictHub}},
		"Pinned":      {reason: "A pin holds before its enrolment is connected.", pins: map[key]Claim{a: {UID: "u1"}}, ask: ask{b, "o2", "u1", "x"}, want: Ruling[key]{Verdict: VerdictDuplicate, Holder: a, Pinned: true, SameCluster: true}},
		"PinnedSame":  {reason: "The pinned one gets what it had.", pins: map[key]Claim{a: {UID: "u1", Identifier: "id"}}, ask: ask{a, "o1", "u1", "id"}, want: Ruling[key]{Verdict: VerdictGranted}},
		"PinnedOther": {reason: "A restart is no way to another cluster.", pins: map[key]Claim{a: {UID: "u1"}}, ask: ask{a, "o1", "u2", "u2"}, want: Ruling[key]{Verdict: VerdictIdentityChanged}},
		"PinnedOld":   {reason: "The pin of an earlier object does not count.", pins: map[key]Claim{a: {UID: "u1", ObjectUID: "o0"}}, ask: ask{a, "o1", "u2", "u2"}, want: Ruling[key]{Verdict: VerdictGranted}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ar := NewArbiter[key]()
			ar.HubUID = "hub"
			for k, p := range tc.pins {
				ar.Pin(k, p)
			}
			for _, q := range tc.before {
				if got := ar.Claim(q.key, q.object, q.uid, q.identifier); got.Verdict != VerdictGranted {
					t.Fatalf("claim %v: %v", q, got)
				}
			}
			got := ar.Claim(tc.ask.key, tc.ask.object, tc.ask.uid, tc.ask.identifier)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestArbiterReleaseFreesEverything(t *testing.T) {
	a, b := key{"capi", "ns", "a"}, key{"capi", "ns", "b"}
	ar := NewArbiter[key]()
	ar.Claim(a, "o1", "u1", "id")
	ar.Claim(b, "o2", "u1", "other")
	if freed := ar.Release(a); !slices.Equal(freed, []key{b}) || ar.Release(a) != nil {
		t.Errorf("release: want what was refused because of it, once; got %v", freed)
	}
	if got := ar.Claim(b, "o2", "u1", "id"); got.Verdict != VerdictGranted {
		t.Errorf("after the release: want Granted, got %v", got)
	}
	if k, ok := ar.Holder("id"); !ok || k != b {
		t.Errorf("Holder: want %v, got %v %t", b, k, ok)
	}
}

func TestArbiterNamesThoseWhoWereRefusedBecauseOfWhatIsFree(t *testing.T) {
	a, b, c := key{"capi", "ns", "a"}, key{"capi", "ns", "b"}, key{"capi", "ns", "c"}
	type ask struct {
		key                     key
		object                  types.UID
		uid, identifier, reason string
		freed                   []key
	}
	ar := NewArbiter[key]()
	for _, q := range []ask{
		{a, "o1", "u1", "id", "The first holds both.", nil},
		{b, "o2", "u2", "id", "Refused, it waits.", nil},
		{c, "o3", "u1", "c", "So does one that leads to the same cluster.", nil},
		{c, "o3", "u3", "c", "Until it leads elsewhere.", nil},
		{a, "o1", "u1", "id", "To claim again frees nothing.", nil},
		{a, "o1", "u1", "id2", "Another identifier frees the old one.", []key{b}},
		{b, "o2", "u2", "id2", "Refused again.", nil},
		{a, "o9", "u3", "x", "A new object of the name gives up what the old one held, although it is refused itself.", []key{b}},
	} {
		if got := ar.Claim(q.key, q.object, q.uid, q.identifier); !slices.Equal(got.Freed, q.freed) {
			t.Errorf("%s Claim of %s: want %v to be freed, got %v", q.reason, q.key, q.freed, got.Freed)
		}
	}
	if freed := ar.Release(c); !slices.Equal(freed, []key{a}) {
		t.Errorf("want the one that waits for it, got %v", freed)
	}
	if len(ar.refused) != 0 || len(ar.waitsFor) != 0 {
		t.Errorf("want no claim to wait any more, got %v %v", ar.refused, ar.waitsFor)
	}
}
