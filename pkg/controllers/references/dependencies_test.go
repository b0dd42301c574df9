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
