// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"slices"
)

// A Cause is something that a user must check.
type Cause struct {
	Ref

	// State is Failed, or Waiting if it may resolve by itself.
	State   string `json:"state"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`

	// Advice is what to do about it.
	Advice string `json:"advice,omitempty"`

	severity Severity
	depth    int
}

// A Node is a displayed thing, with its dependencies.
type Node struct {
	Ref

	// State is OK, Waiting, Failed or NotLookedAt.
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// Note says how it relates to the question.
	Note  string `json:"note,omitempty"`
	Needs []Node `json:"needs,omitempty"`
}

// An Answer explains why something does not work.
type Answer struct {
	// OK means that nothing was found.
	OK bool `json:"ok"`

	// Causes are the findings, the most likely explanation first.
	Causes []Cause `json:"causes,omitempty"`

	// NotLookedAt is what could not be read, so there may be more.
	NotLookedAt []Cause `json:"notLookedAt,omitempty"`

	// Walk is everything that was read, from the object in question.
	Walk Node `json:"walk"`
}

// Explain answers the question about a thing.
func Explain(root *Thing) Answer {
	e := &explainer{}
	walk, _ := e.walk(root, 0)
	slices.SortStableFunc(e.causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.severity, a.severity), cmp.Compare(b.depth, a.depth))
	})
	return Answer{OK: len(e.causes) == 0 && len(e.unseen) == 0, Causes: unique(e.causes), NotLookedAt: unique(e.unseen), Walk: walk}
}

type explainer struct{ causes, unseen []Cause }

// walk returns a thing for display, and whether something in or below it explains why its dependents are not healthy.
func (e *explainer) walk(t *Thing, depth int) (_ Node, explains bool) {
	node := Node{Ref: t.Ref, State: Fine.String(), Note: t.Note}
	below := false
	for _, need := range t.Needs {
		n, wrong := e.walk(need, depth+1)
		node.Needs = append(node.Needs, n)
		below = below || wrong
	}
	worst := Finding{}
	for _, f := range findings(t) {
		if f.Severity > worst.Severity {
			worst = f
		}
		c := Cause{
			Ref: t.Ref, State: f.Severity.String(), Reason: f.Reason, Message: f.Message, Advice: advice(f.Reason), severity: f.Severity, depth: depth,
		}
		switch {
		case f.Severity == Unseen:
			e.unseen = append(e.unseen, c)
		case f.Severity > Unseen:
			explains = true
			if !f.Derived || !below {
				e.causes = append(e.causes, c)
			}
		}
	}
	node.State, node.Reason, node.Message = worst.Severity.String(), worst.Reason, worst.Message
	return node, explains || below
}

// unique removes duplicates about the same object.
func unique(causes []Cause) []Cause {
	type key struct {
		ref    Ref
		reason string
	}
	seen := map[key]bool{}
	return slices.DeleteFunc(causes, func(c Cause) bool {
		k := key{c.Ref, c.Reason}
		defer func() { seen[k] = true }()
		return seen[k]
	})
}
