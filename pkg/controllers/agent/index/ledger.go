// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// PushedClaim identifies an apply by its input and its result.
type PushedClaim struct {
	// Hash is that of the intent; UID and ResourceVersion are those of the hub's object afterwards.
	Hash            string
	UID             types.UID
	ResourceVersion string
}

// Failure records since when synchronising a claim has failed without a success in between.
type Failure struct {
	// UID is that of the claim. For another claim of its name, the record starts again.
	UID   types.UID
	Since time.Time
}

// ReconcileRequestInterval is how often a claim is reconciled at its owner's request.
const ReconcileRequestInterval = 10 * time.Second

// ReconcileRequest is the state of an owner's requests to reconcile a claim.
type ReconcileRequest struct {
	// Pending means that a request has not been answered yet. Answered is when one was answered last.
	Pending  bool
	Answered time.Time
}

// Left returns how long a request made now has to wait.
func (r ReconcileRequest) Left(now time.Time) time.Duration {
	return max(0, r.Answered.Add(ReconcileRequestInterval).Sub(now))
}

// Changes are the times since which a claim, and its object in the hub, differ from the other side; zero if they do
// not. See package downstream.
type Changes struct{ Claim, Hub time.Time }

// Settle drops changes that were answered, or need no answer. Newer ones stay.
func (c *Changes) Settle(answered Changes) {
	if c.Claim.Equal(answered.Claim) {
		c.Claim = time.Time{}
	}
	if c.Hub.Equal(answered.Hub) {
		c.Hub = time.Time{}
	}
}

// Entry is the in-memory state of one claim. All of it can be lost: a restarted manager repeats a request or a write.
// The exception is Vanished: without it, the object of a deleted claim is not deleted, but counted (see orphans).
type Entry struct {
	// Pushed is the claim's last apply, to detect that repeating it would change nothing although the hub's object looks
	// different.
	Pushed PushedClaim

	// Pruned is a status that the cluster did not keep as it was written; see package downstream.
	Pruned PrunedStatus

	// Released is the state of a deleted claim in which our finalizer was removed.
	Released Version

	// Reason is that under which the claim is counted.
	Reason string

	// Changes are those that the other side has not answered.
	Changes Changes

	// Failing records since when synchronising the claim has failed; see package downstream.
	Failing Failure

	// Shown identifies late fields, and Recorded a record, that were written and not kept; see package downstream.
	Shown, Recorded string

	// Request is the state of its owner's requests to reconcile it; see reconcile_request.go of the agent.
	Request ReconcileRequest

	// Vanished is the last state of a claim that is gone although it had our finalizer; see vanished.go of the agent.
	Vanished *unstructured.Unstructured
}

// Ledger holds one entry for each claim with in-memory state. The zero value is empty.
type Ledger struct {
	mu      sync.Mutex
	entries RequestMap[Entry]
}

// Entry returns the entry of a claim, or an empty one.
func (l *Ledger) Entry(req multicluster.ObjectRequest) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, _ := l.entries.Get(req)
	return e
}

// Edit changes the entry of a claim. An empty result is dropped.
func (l *Ledger) Edit(req multicluster.ObjectRequest, change func(*Entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, _ := l.entries.Get(req)
	change(&e)
	if e == (Entry{}) {
		l.entries.Delete(req)
		return
	}
	if l.entries == nil {
		l.entries = RequestMap[Entry]{}
	}
	l.entries.Set(req, e)
}

// Each calls a function for each entry. It must not call the ledger.
func (l *Ledger) Each(fn func(multicluster.ObjectRequest, Entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, entries := range l.entries {
		for req, e := range entries {
			fn(req, e)
		}
	}
}

// RegisterClaims publishes the claims by reason. It panics if that is registered.
func RegisterClaims(reg prometheus.Registerer, l *Ledger) {
	metric.RegisterGauges(reg, metric.Definition{
		Name:       "masthead_agent_requirements",
		Help:       "Claims of a workload cluster, by the reason of their condition AgentSynced.",
		PerCluster: true,
		Labels:     []metric.Label{{Name: "reason", Values: "the reason of the condition"}},
		See:        "claims.md#the-condition-agentsynced",
	}, func(emit func(float64, ...string)) {
		type series struct {
			cluster mcr.ClusterName
			reason  string
		}
		counts := map[series]float64{}
		l.Each(func(req multicluster.ObjectRequest, e Entry) {
			if e.Reason != "" {
				counts[series{req.ClusterName, e.Reason}]++
			}
		})
		for s, n := range counts {
			emit(n, metric.ClusterValues(s.cluster, s.reason)...)
		}
	})
}

// Forget drops the entries of a cluster's claims that are gone.
func (l *Ledger) Forget(name mcr.ClusterName, gone func(multicluster.ObjectRequest) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Forget(name, gone)
}

// A definition may prune status fields that it does not know, our condition among them. Then the claim never shows what
// was written. The ledger remembers it, so that neither the write nor the event is repeated. Users of such claims have
// only events and the conflict annotation.

// PrunedStatus is a status of a claim that the cluster did not keep as it was written.
type PrunedStatus struct {
	UID types.UID

	// Reason is that of our condition.
	Reason string

	// Written and Shown are hashes of the written status and of the one the claim showed afterwards.
	Written, Shown string
}
