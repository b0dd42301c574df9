// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/objects"
)

// Arbiter decides which enrolment holds a cluster and an identifier. First come, first served: the holder keeps both
// while it is enrolled, connected or not, so that a cluster that is down does not lose its identity to a newcomer.
type Arbiter[K comparable] struct {
	// HubUID is the UID of the hub, which is never granted. Set it before the first claim.
	HubUID string

	mu           sync.Mutex
	claims       map[K]Claim
	byUID        map[string]K
	byIdentifier map[string]K

	// refused maps a holder to the enrolments refused because of it. waitsFor is the inverse.
	refused  objects.Index[K, K]
	waitsFor map[K]K
}

// Claim is what one enrolment holds.
type Claim struct {
	UID, Identifier string
	// ObjectUID is the UID of the enrolled object, empty if it is not known.
	ObjectUID types.UID
	// Pinned means that the claim was loaded and the enrolment may no longer exist.
	Pinned bool
}

// Verdict is the result of a claim.
type Verdict string

const (
	// VerdictGranted means: both are granted.
	VerdictGranted Verdict = "Granted"
	// VerdictDuplicate means: another one holds the cluster or the identifier.
	VerdictDuplicate Verdict = "Duplicate"
	// VerdictIdentityChanged means: it held another cluster before.
	VerdictIdentityChanged Verdict = "IdentityChanged"
	// VerdictHub means: it claims the hub.
	VerdictHub Verdict = "Hub"
)

// Ruling is the answer to a claim.
type Ruling[K comparable] struct {
	Verdict Verdict
	// Holder holds the cluster or the identifier, if the verdict is Duplicate.
	Holder K
	// Pinned means that the holder was loaded and must be looked up before its claim counts.
	Pinned bool
	// SameCluster means that the cluster is held, not only the identifier.
	SameCluster bool
	// Freed are the enrolments that were refused because of what the claimant just gave up.
	Freed []K
}

// NewArbiter returns an Arbiter without claims.
func NewArbiter[K comparable]() *Arbiter[K] {
	return &Arbiter[K]{
		claims: map[K]Claim{}, byUID: map[string]K{}, byIdentifier: map[string]K{},
		refused: objects.Index[K, K]{}, waitsFor: map[K]K{},
	}
}

// Pin loads a claim from before the start. Of two pins for the same cluster, the first loaded wins.
func (a *Arbiter[K]) Pin(k K, c Claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.UID == "" {
		return
	}
	if c.Identifier == "" {
		c.Identifier = c.UID
	}
	if _, taken := a.byUID[c.UID]; taken {
		return
	}
	if _, taken := a.byIdentifier[c.Identifier]; taken {
		return
	}
	c.Pinned = true
	a.setLocked(k, c)
}

// Claim claims a cluster and an identifier for an enrolment. A claim that was granted before is granted again; with
// another identifier, the old one is given up only if the new one is free.
func (a *Arbiter[K]) Claim(k K, object types.UID, uid, identifier string) Ruling[K] {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.stopWaitingLocked(k)
	if uid == a.HubUID {
		return Ruling[K]{Verdict: VerdictHub}
	}
	var freed []K
	own, held := a.claims[k]
	if held {
		switch {
		case own.ObjectUID != "" && own.ObjectUID != object:
			held, freed = false, a.releaseLocked(k) // Of an earlier object of this name.
		case own.UID != uid:
			return Ruling[K]{Verdict: VerdictIdentityChanged}
		}
	}
	if h, taken := a.byUID[uid]; taken && h != k {
		return a.refuseLocked(k, Ruling[K]{Holder: h, SameCluster: true, Freed: freed})
	}
	if h, taken := a.byIdentifier[identifier]; taken && h != k {
		return a.refuseLocked(k, Ruling[K]{Holder: h, Freed: freed})
	}
	if held {
		delete(a.byIdentifier, own.Identifier)
		if own.Identifier != identifier {
			freed = a.freeLocked(k)
		}
	}
	a.setLocked(k, Claim{UID: uid, Identifier: identifier, ObjectUID: object})
	return Ruling[K]{Verdict: VerdictGranted, Freed: freed}
}

// refuseLocked records that an enrolment waits for a holder.
func (a *Arbiter[K]) refuseLocked(k K, r Ruling[K]) Ruling[K] {
	a.refused.Insert(r.Holder, k)
	a.waitsFor[k] = r.Holder
	r.Verdict, r.Pinned = VerdictDuplicate, a.claims[r.Holder].Pinned
	return r
}

// freeLocked returns the enrolments that were refused because of a holder, and ends their wait.
func (a *Arbiter[K]) freeLocked(holder K) []K {
	if len(a.refused[holder]) == 0 {
		return nil
	}
	freed := a.refused.Values(holder)
	for _, k := range freed {
		a.stopWaitingLocked(k)
	}
	return freed
}

func (a *Arbiter[K]) stopWaitingLocked(k K) {
	if holder, waits := a.waitsFor[k]; waits {
		a.refused.Delete(holder, k)
		delete(a.waitsFor, k)
	}
}

// Confirm records that a pinned enrolment still exists.
func (a *Arbiter[K]) Confirm(k K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.claims[k]; ok {
		c.Pinned = false
		a.claims[k] = c
	}
}

// Release gives up what an enrolment holds or waits for, and returns the enrolments that were refused because of it.
func (a *Arbiter[K]) Release(k K) (freed []K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopWaitingLocked(k)
	return a.releaseLocked(k)
}

// Held returns what an enrolment holds.
func (a *Arbiter[K]) Held(k K) (Claim, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.claims[k]
	return c, ok
}

// Holder returns the holder of an identifier.
func (a *Arbiter[K]) Holder(identifier string) (K, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.byIdentifier[identifier]
	return k, ok
}

func (a *Arbiter[K]) setLocked(k K, c Claim) {
	a.claims[k] = c
	a.byUID[c.UID] = k
	a.byIdentifier[c.Identifier] = k
}

func (a *Arbiter[K]) releaseLocked(k K) (freed []K) {
	c, ok := a.claims[k]
	if !ok {
		return nil
	}
	delete(a.claims, k)
	delete(a.byUID, c.UID)
	delete(a.byIdentifier, c.Identifier)
	return a.freeLocked(k)
}
