// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"iter"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/exhaustive"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// situation is everything that the phase of a definition depends on. Current says whose the cluster's definition is.
type situation struct {
	Current string
	Facts   Facts
}

func situations() iter.Seq[situation] {
	owner := hubidentity.Owner{ID: agenttest.OurHub, Predecessors: []hubidentity.Identity{"hub-before"}}
	crd := func(name string, labels map[string]string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{}}
		out.SetName(name)
		out.SetLabels(labels)
		return out
	}
	mirrored := crd("compositions.apiextensions.crossplane.io", owner.Stamp(nil))
	mirrored.SetAnnotations(map[string]string{fleetv1alpha1.MirroredAnnotation: "true"})
	const name = "dbs.acmeco.org"
	currents := map[string]*unstructured.Unstructured{
		"None": nil, "Ours": crd(name, owner.Stamp(nil)), "Predecessors": crd(name, hubidentity.Owner{ID: "hub-before"}.Stamp(nil)),
		"OtherHubs": crd(name, hubidentity.Owner{ID: "hub-b"}.Stamp(nil)), "Users": crd(name, nil), "Mirrored": mirrored,
	}
	return func(yield func(situation) bool) {
		for whose, current := range currents {
			for bits := range 1 << 10 {
				bit := func(n int) bool { return bits&(1<<n) != 0 }
				f := Facts{
					PublishedKnown: bit(0), ClusterKnown: bit(1), Offered: bit(2), Kept: bit(3), Following: bit(4), JudgeableKnown: bit(5), Judged: bit(6),
					Followed: index.Followed{InHub: bit(7), Retained: bit(8), DeletionsOnly: bit(9)}, Current: current, Owner: owner,
				}
				if !f.Following && f.Followed != (index.Followed{}) {
					continue // There is nothing to say of it.
				}
				if !yield(situation{whose, f}) {
					return
				}
			}
		}
	}
}

// TestPhaseExhaustive checks what no definition ever is, in every situation. What each is, is in TestDecidePhase.
func TestPhaseExhaustive(t *testing.T) {
	is := func(s situation, phases ...Phase) bool {
		return slices.Contains(phases, DecidePhase(s.Facts))
	}
	known := func(s situation) bool { return s.Facts.PublishedKnown && s.Facts.ClusterKnown }
	exhaustive.Check(t, situations(), []exhaustive.Property[situation]{
		{
			Sentence: "A definition is withdrawn only from a cluster that this hub put it into, for which it is known that it is not offered.",
			When:     func(s situation) bool { return is(s, Withdrawn) },
			Holds: func(s situation) bool {
				return known(s) && !s.Facts.Offered && (s.Current == "Ours" || s.Current == "Predecessors" || s.Current == "Mirrored")
			},
		},
		{
			Sentence: "A definition is withdrawn only while its claims are followed and released, and as both sides' versions are now.",
			When:     func(s situation) bool { return is(s, Withdrawn) },
			Holds: func(s situation) bool {
				return s.Facts.Following && !s.Facts.Followed.DeletionsOnly && s.Facts.JudgeableKnown && s.Facts.Judged
			},
		},
		{
			Sentence: "Without a class, or with one that disables the agent, a cluster keeps what it has.",
			When:     func(s situation) bool { return s.Facts.Kept },
			Holds:    func(s situation) bool { return !is(s, Withdrawn) },
		},
		{
			Sentence: "Nothing is decided while a side is not known.",
			When:     func(s situation) bool { return !known(s) },
			Holds:    func(s situation) bool { return is(s, Unknown) },
		},
		{
			Sentence: "What is offered is installed, regardless of all else.",
			When:     func(s situation) bool { return known(s) && s.Facts.Offered },
			Holds:    func(s situation) bool { return is(s, Offered) },
		},
		{
			Sentence: "What is not offered is not put there.",
			When:     func(s situation) bool { return !s.Facts.Offered },
			Holds:    func(s situation) bool { return !is(s, Offered) },
		},
		{
			Sentence: "A definition of another controller of Masthead is nothing of the agent's.",
			When: func(s situation) bool {
				return known(s) && s.Current == "Mirrored" && !s.Facts.Following && !s.Facts.Offered
			},
			Holds: func(s situation) bool { return is(s, Unrelated) },
		},
		{
			Sentence: "What is followed is never unrelated: its claims are released first.",
			When:     func(s situation) bool { return s.Facts.Following },
			Holds:    func(s situation) bool { return !is(s, Unrelated) },
		},
		{
			Sentence: "A definition that is not offered any more is decided about once both sides are known.",
			When:     func(s situation) bool { return known(s) && s.Facts.JudgeableKnown && s.Facts.Judged },
			Holds:    func(s situation) bool { return is(s, Offered, Unrelated, Retained, Withdrawn) },
		},
		{
			Sentence: "What this hub put there, and offers no more, goes.",
			When: func(s situation) bool {
				f := s.Facts
				return s.Current == "Ours" && known(s) && !f.Offered && !f.Kept && f.Following && !f.Followed.DeletionsOnly && f.JudgeableKnown && f.Judged
			},
			Holds: func(s situation) bool { return is(s, Withdrawn) },
		},
	})
}
