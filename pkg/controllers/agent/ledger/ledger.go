// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
)

// PushedClaim identifies an apply by its input and its result.
type PushedClaim struct {
	// Hash is that of the intent, UID and ResourceVersion those of the hub's object afterwards.
	Hash            string
	UID             types.UID
	ResourceVersion string
}

// Failure is since when synchronising a claim has failed without a success in between.
type Failure struct {
	// UID is that of the claim. Another one of its name begins anew.
	UID   types.UID
	Since time.Time
}

// AskedInterval is how often a claim is looked at because its owner asks for it.
const AskedInterval = 10 * time.Second

// Asked is what is kept about a claim whose owner asks for it to be looked at.
type Asked struct {
	// Pending is whether there is a request that was not answered yet, and Answered when one was answered last.
	Pending  bool
	Answered time.Time
}

// Left is how long a request that is made now has to wait.
func (a Asked) Left(now time.Time) time.Duration {
	return max(0, a.Answered.Add(AskedInterval).Sub(now))
}

// Entry is what is kept in memory about one claim. All of it can be lost: a manager that was restarted asks or writes
// once more. The exception is Vanished, without which the object of a claim that went is deleted only if it was created
// a moment ago (see unclaimed.go of the agent), and else counted (see orphans).
type Entry struct {
	// Pushed is what the claim was last applied as, to notice that applying it again would change nothing although the
	// hub's object does not look like it.
	Pushed PushedClaim

	// Pruned is a status that did not stay as it was written; see package report.
	Pruned PrunedStatus

	// Failing is since when synchronising the claim has failed; see package report.
	Failing Failure

	// Shown identifies late fields that were applied and did not stay; see package down.
	Shown string

	// Asked is what is kept of its owner's requests to look at it now; see asked.go of the agent.
	Asked Asked

	// Vanished is the last state of a claim that is gone although it had our finalizer; see vanished.go of the agent.
	Vanished *unstructured.Unstructured
}

// Ledger has one entry for each claim about which something is kept. The zero value is an empty one.
type Ledger struct {
	mu      sync.Mutex
	entries request.Map[Entry]
}

// Of returns the entry of a claim. One that is not there is empty.
func (l *Ledger) Of(req request.Request) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, _ := l.entries.Get(req)
	return e
}

// Edit changes the entry of a claim. One that is empty afterwards is dropped.
func (l *Ledger) Edit(req request.Request, change func(*Entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, _ := l.entries.Get(req)
	change(&e)
	if e == (Entry{}) {
		l.entries.Delete(req)
		return
	}
	if l.entries == nil {
		l.entries = request.Map[Entry]{}
	}
	l.entries.Set(req, e)
}

// Forget drops the entries of those claims of a cluster that are gone.
func (l *Ledger) Forget(name mcr.ClusterName, gone func(request.Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Forget(name, gone)
}

// A definition may drop fields of the status that it does not know, our condition among them. Then a claim never shows
// what it was told, and it is remembered here that it was told: neither the write nor the event is repeated. For such
// claims, events and the annotation of a conflict are all that their users have.

// PrunedStatus is a status that was written to a claim and did not stay as it was written.
type PrunedStatus struct {
	UID types.UID

	// Reason is that of our condition.
	Reason string

	// Written and Shown are hashes of what was written and of what the claim showed afterwards.
	Written, Shown string
}
