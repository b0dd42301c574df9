// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership checks that the names of claims in a hub are owned like locks: what the claims in the workload
// clusters report of their objects is linearisable with what happened to these in the hub.
//
// The history of a name has two kinds of operations. Changes of its owner are known in their order; when each was made
// is only known to be before it was observed. A report is about the hub at some moment since the claim's report before
// it, as a watch may lag behind, but never goes back.
package ownership

import (
	"fmt"
	"slices"
	"sync"

	"github.com/anishathalye/porcupine"
)

// History records the operations on the names of a hub. The zero value is ready to use, concurrently.
type History struct {
	// Live means that changes are observed when they are made.
	Live bool

	mu         sync.Mutex
	now        int64
	operations map[string][]porcupine.Operation
	// changes are how often each name changed its owner, reported when each claim last reported.
	changes  map[string]int
	reported map[string]int64
}

// Owners of a name that are no source.
const (
	Unowned = ""
	Foreign = "an object without a source"
)

// input is an operation: the change of a number to an owner, or a report.
type input struct {
	change int
	owner  string
	// holds reports whether a report is true of an owner; nil for a change.
	holds func(owner string) bool
}

// state is after how many changes a name has which owner.
type state struct {
	changes int
	owner   string
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
		Input: input{change: h.changes[name], owner: owner}, Call: began, Return: h.now, ClientId: 0,
	})
}

// Reported records that a claim reports what holds reports of the owner of a name.
func (h *History) Reported(claim, name string, holds func(owner string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.init()
	h.now++
	h.operations[name] = append(h.operations[name], porcupine.Operation{
		Input: input{holds: holds}, Call: h.reported[claim+" "+name], Return: h.now, ClientId: 1,
	})
	h.reported[claim+" "+name] = h.now
}

func (h *History) init() {
	if h.operations == nil {
		h.operations, h.changes, h.reported = map[string][]porcupine.Operation{}, map[string]int{}, map[string]int64{}
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
		switch {
		case op.holds != nil:
			return op.holds(s.owner), s
		case op.change != s.changes+1:
			return false, s
		}
		return true, state{changes: op.change, owner: op.owner}
	},
}
