// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/references"
)

func sourceNamed(name string) references.Source {
	return references.Source{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}, Resource: "things",
		NamespacedName: types.NamespacedName{Namespace: "team-a", Name: name},
	}
}

func TestCycle(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     map[string][]string
		want   []string
	}{
		"None":    {reason: "It depends on nothing that depends on it.", of: map[string][]string{"a": {"b", "c"}, "b": {"c"}}},
		"Two":     {reason: "Each depends on the other.", of: map[string][]string{"a": {"b"}, "b": {"a"}}, want: []string{"a", "b"}},
		"Far":     {reason: "The way is in the order of the dependencies.", of: map[string][]string{"a": {"x", "b"}, "b": {"c"}, "c": {"y", "a"}}, want: []string{"a", "b", "c"}},
		"Others":  {reason: "Others depend on each other, and it depends on them.", of: map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b"}}},
		"Diamond": {reason: "Two ways lead to the same.", of: map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDependencies()
			for user, uses := range tc.of {
				var sources []references.Source
				for _, u := range uses {
					sources = append(sources, sourceNamed(u))
				}
				d.set(keyOfSource(sourceNamed(user)), Request{}, sources)
			}
			way, known := d.cycle(keyOfSource(sourceNamed("a")))
			var got []string
			for _, k := range way {
				got = append(got, k.Name)
			}
			if !known || !slices.Equal(got, tc.want) {
				t.Errorf("%s: want %v, got %v, known: %v", tc.reason, tc.want, got, known)
			}
		})
	}
}

// TestEquivalentSources: an object is the same in each of the groups in which it is served.
func TestEquivalentSources(t *testing.T) {
	event := func(group string) references.Source {
		return references.Source{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Event"}, Resource: "events",
			NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "e"},
		}
	}
	if a, b := keyOfSource(event("")), keyOfSource(event("events.k8s.io")); a != b {
		t.Errorf("want one object, got %v and %v", a, b)
	}
	if a, b := keyOfSource(event("")), keyOfSource(event("example.org")); a == b {
		t.Errorf("want two objects, got %v", a)
	}
}

// TestTakeAllWatches: the objects of one namespace leave watches to others, and give them back.
func TestTakeAllWatches(t *testing.T) {
	d := newDependencies()
	many := func(from, n int) (out []references.Source) {
		for i := range n {
			out = append(out, sourceNamed(fmt.Sprintf("s%d", from+i)))
		}
		return out
	}
	greedy := func(name string) objectKey { return keyOfSource(sourceNamed(name)) }
	victim := objectKey{GroupKind: schema.GroupKind{Kind: "Thing"}, NamespacedName: types.NamespacedName{Namespace: "team-b", Name: "a"}}
	for round := range 3 {
		if c := d.set(greedy("a"), Request{}, many(0, 50)); !c.all || len(c.start) != 50 {
			t.Fatalf("round %d: want 50 watches, got %d, all: %v", round, len(c.start), c.all)
		}
		if c := d.set(greedy("b"), Request{}, many(40, 1000)); c.all || len(c.start) != maxSourcesOfNamespace-50 {
			t.Errorf("round %d: want as many as are left to the namespace, got %d, all: %v", round, len(c.start), c.all)
		}
		if c := d.set(victim, Request{}, many(2000, 10)); !c.all || len(c.start) != 10 {
			t.Errorf("round %d: want all for another namespace, got %d, all: %v", round, len(c.start), c.all)
		}
		for _, key := range []objectKey{greedy("a"), greedy("b"), victim} {
			d.set(key, Request{}, nil)
		}
		if len(d.users)+len(d.inNamespace)+len(d.watched)+len(d.of)+len(d.dependents) > 0 {
			t.Errorf("round %d: something is left: %+v", round, d)
		}
	}
}

// TestTakeAllWatchesTogether: cluster-scoped objects, or the objects of several namespaces together, cannot take all
// watches from others.
func TestTakeAllWatchesTogether(t *testing.T) {
	cases := map[string]struct {
		reason     string
		namespaces []string // The namespaces whose objects ask for as many as they can.
		victim     string
		want       int // Of ten.
	}{
		"ClusterScoped":      {reason: "Who may create cluster-scoped objects is one user among others.", namespaces: []string{""}, victim: "team-b", want: 10},
		"FromClusterScoped":  {reason: "Nor do namespaces take what cluster-scoped objects need.", namespaces: []string{"n1", "n2", "n3", "n4"}, victim: "", want: 1},
		"FourNamespaces":     {reason: "A namespace always has room for one.", namespaces: []string{"n1", "n2", "n3", "n4"}, victim: "team-b", want: 1},
		"FiveWithOneCluster": {reason: "A namespace always has room for one.", namespaces: []string{"", "n1", "n2", "n3", "n4"}, victim: "team-b", want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDependencies()
			ask := func(namespace string, from, n int) change {
				var sources []references.Source
				for i := range n {
					sources = append(sources, sourceNamed(fmt.Sprintf("s%d", from+i)))
				}
				user := objectKey{GroupKind: schema.GroupKind{Kind: "Thing"}, NamespacedName: types.NamespacedName{Namespace: namespace, Name: "a"}}
				return d.set(user, Request{}, sources)
			}
			for i, ns := range tc.namespaces {
				if c := ask(ns, 1000*i, 1000); c.all || len(c.start) > maxSourcesOfNamespace {
					t.Errorf("want at most %d watches for the namespace %q, got %d, all: %v", maxSourcesOfNamespace, ns, len(c.start), c.all)
				}
			}
			for again := range 2 {
				// It keeps what it has.
				c := ask(tc.victim, 100_000, 10)
				key := objectKey{GroupKind: schema.GroupKind{Kind: "Thing"}, NamespacedName: types.NamespacedName{Namespace: tc.victim, Name: "a"}}
				if got := len(d.watched[key]); got < tc.want || c.all != (got == 10) || again > 0 && len(c.start)+len(c.stop) > 0 {
					t.Errorf("%s Want %d watches, got %d: %+v", tc.reason, tc.want, got, c)
				}
			}
			if len(d.users) > maxSources {
				t.Errorf("want at most %d watches, got %d", maxSources, len(d.users))
			}
		})
	}
}

// TestExhaustMemoryByLongChain: a chain of objects that depend on each other takes no more memory than it has steps,
// and no more steps than maxSteps.
func TestExhaustMemoryByLongChain(t *testing.T) {
	d := newDependencies()
	const length = maxSteps + 2
	for i := range length {
		d.set(keyOfSource(sourceNamed(fmt.Sprintf("o%d", i))), Request{}, []references.Source{sourceNamed(fmt.Sprintf("o%d", i+1))})
	}
	var known bool
	allocated := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			_, known = d.cycle(keyOfSource(sourceNamed("o0")))
		}
	}).AllocedBytesPerOp()
	if known {
		t.Errorf("a chain of %d was followed to its end", length)
	}
	if most := int64(maxSteps * 2000); allocated > most {
		t.Errorf("following the chain takes %d bytes, want at most %d", allocated, most)
	}
	if _, known := d.cycle(keyOfSource(sourceNamed(fmt.Sprintf("o%d", length-100)))); !known {
		t.Error("a short chain is not followed to its end")
	}
}
