// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership checks that the names of claims in a hub are owned like locks: what the claims in the workload
// clusters report of their objects is linearisable with what happened to these in the hub.
//
// The history of a name has two kinds of operations. Changes of its owner are known in their order, and so are the
// reports of each claim. A report is about the hub at some moment, not before that of the claim's report before it: the
// manager's watch may lag behind, but never goes back. When each was made is only known to be before it was observed.
package ownership

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/anishathalye/porcupine"
)

// History records the operations on the names of a hub. The zero value is ready to use, concurrently.
type History struct {
	// Live means that changes and reports are observed when they are made.
	Live bool

	mu         sync.Mutex
	now        int64
	operations map[string][]porcupine.Operation
	// changes are how often each name changed its owner, reports how often each claim reported of a name.
	changes, reports map[string]int
	// reported is when each claim last reported of a name.
	reported map[string]int64
}

// Owners of a name that are no source.
const (
	Unowned = ""
	Foreign = "an object without a source"
)

// input is an operation: a change to an owner, or the report of a claim. Both are numbered.
type input struct {
	number       int
	owner, claim string
	// holds reports whether a report is true of an owner; nil for a change.
	holds func(owner string) bool
}

// state is which owner a name has, after how many changes, and after how many reports of each claim.
type state struct {
	owner   string
	changes int
	reports map[string]int
}

// Changed records that a name was observed to have an owner, if that is news.
func (h *History) Changed(name, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.init()
	h.now++
	h.changes[name]++
	began := int64(0)
	if h.Live {
		began = h.now
	}
	h.operations[name] = append(h.operations[name], porcupine.Operation{
		Input: input{number: h.changes[name], owner: owner}, Call: began, Return: h.now, ClientId: 0,
	})
}

// Reported records that a claim reports what holds reports of the owner of a name.
func (h *History) Reported(claim, name string, holds func(owner string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.init()
	h.now++
	key, began := claim+" "+name, int64(0)
	if h.Live {
		began = h.reported[key]
	}
	h.reports[key]++
	h.operations[name] = append(h.operations[name], porcupine.Operation{
		Input: input{number: h.reports[key], claim: claim, holds: holds}, Call: began, Return: h.now, ClientId: 1,
	})
	h.reported[key] = h.now
}

func (h *History) init() {
	if h.operations == nil {
		h.operations, h.changes, h.reports, h.reported = map[string][]porcupine.Operation{}, map[string]int{}, map[string]int{}, map[string]int64{}
	}
}

// Len is the number of operations.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, operations := range h.operations {
		n += len(operations)
	}
	return n
}

// Check returns which names have a history that no order of their operations explains.
func (h *History) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var wrong []string
	for name, operations := range h.operations {
		if !porcupine.CheckOperations(model, operations) {
			wrong = append(wrong, name)
		}
	}
	if slices.Sort(wrong); len(wrong) > 0 {
		return fmt.Errorf("claims reported owners that %q did not have then", wrong)
	}
	return nil
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, in, _ any) (bool, any) {
		s, op := before.(state), in.(input) //nolint:forcetypeassert // They are made here.
		if op.holds == nil {
			return op.number == s.changes+1, state{owner: op.owner, changes: op.number, reports: s.reports}
		}
		if op.number != s.reports[op.claim]+1 || !op.holds(s.owner) {
			return false, s
		}
		reports := maps.Clone(s.reports)
		if reports == nil {
			reports = map[string]int{}
		}
		reports[op.claim] = op.number
		return true, state{owner: s.owner, changes: s.changes, reports: reports}
	},
	Equal: func(a, b any) bool {
		s, other := a.(state), b.(state) //nolint:forcetypeassert // As above.
		return s.owner == other.owner && s.changes == other.changes && maps.Equal(s.reports, other.reports)
	},
}
