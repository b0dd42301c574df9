// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
)

// pushedClaim identifies an apply by its input and its result.
type pushedClaim struct {
	hash            string
	uid             types.UID
	resourceVersion string
}

// failure is since when synchronising a claim has failed without a success in between.
type failure struct {
	uid   types.UID
	since time.Time
}

// askedInterval is how often a claim is looked at because its owner asks for it.
const askedInterval = 10 * time.Second

// asked is what is kept about a claim whose owner asks for it to be looked at.
type asked struct {
	// pending is whether there is a request that was not answered yet, and answered when one was answered last.
	pending  bool
	answered time.Time
}

// left is how long a request that is made now has to wait.
func (a asked) left(now time.Time) time.Duration {
	return max(0, a.answered.Add(askedInterval).Sub(now))
}

// entry is what is kept in memory about one claim. All of it can be lost: a manager that was restarted asks or writes
// once more. The exception is vanished, without which the object of a claim that went is deleted only if it was created
// a moment ago (see unclaimed.go), and else counted (see orphans).
type entry struct {
	// pushed is what the claim was last applied as, to notice that applying it again would change nothing although the
	// hub's object does not look like it.
	pushed pushedClaim

	// told is a status that did not stay as it was written; see told.go.
	told toldStatus

	// failing is since when synchronising the claim has failed; see failing.go.
	failing failure

	// shown identifies late fields that were applied and did not stay; see rememberShown.
	shown string

	// asked is what is kept of its owner's requests to look at it now; see asked.go.
	asked asked

	// vanished is the last state of a claim that is gone although it had our finalizer; see vanished.go.
	vanished *unstructured.Unstructured
}

// ledger has one entry for each claim about which something is kept. The zero value is an empty one.
type ledger struct {
	mu      sync.Mutex
	entries request.Map[entry]
}

// of returns the entry of a claim. One that is not there is empty.
func (l *ledger) of(req request.Request) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, _ := l.entries.Get(req)
	return e
}

// edit changes the entry of a claim. One that is empty afterwards is dropped.
func (l *ledger) edit(req request.Request, change func(*entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, _ := l.entries.Get(req)
	change(&e)
	if e == (entry{}) {
		l.entries.Delete(req)
		return
	}
	if l.entries == nil {
		l.entries = request.Map[entry]{}
	}
	l.entries.Set(req, e)
}

// forget drops the entries of those claims of a cluster that are gone.
func (l *ledger) forget(name mcr.ClusterName, gone func(request.Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Forget(name, gone)
}

// A definition may drop fields of the status that it does not know, our condition among them. Then a claim never shows
// what it was told, and it is remembered here that it was told: neither the write nor the event is repeated. For such
// claims, events and the annotation of a conflict are all that their users have.

// toldStatus is a status that was written to a claim and did not stay as it was written.
type toldStatus struct {
	uid types.UID

	// reason is that of our condition.
	reason string

	// written and shown are hashes of what was written and of what the claim showed afterwards.
	written, shown string
}
