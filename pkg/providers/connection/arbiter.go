// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"cmp"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/objects"
)

// An arbiter decides which enrolment holds a cluster and an identifier. First come, first served: the holder keeps both
// while it is enrolled, connected or not, so that a cluster that is down does not lose its identity to a newcomer.
type arbiter struct {
	// hubUID is the UID of the hub, which is never granted. Set it before the first claim.
	hubUID string

	mu           sync.Mutex
	claims       map[Key]claim
	byUID        map[string]Key
	byIdentifier map[string]Key

	// refused maps a holder to the enrolments refused because of it. waitsFor is the inverse.
	refused  objects.Index[Key, Key]
	waitsFor map[Key]Key
}

// A claim is what one enrolment holds.
type claim struct {
	UID, Identifier string
	// ObjectUID is the UID of the enrolled object, empty if it is not known.
	ObjectUID types.UID
	// Pinned means that the claim was loaded and the enrolment may no longer exist.
	Pinned bool
}

// A verdict is the result of a claim.
type verdict string

const (
	// verdictGranted means: both are granted.
	verdictGranted verdict = "Granted"
	// verdictDuplicate means: another one holds the cluster or the identifier.
	verdictDuplicate verdict = "Duplicate"
	// verdictIdentityChanged means: it held another cluster before.
	verdictIdentityChanged verdict = "IdentityChanged"
	// verdictHub means: it claims the hub.
	verdictHub verdict = "Hub"
)

// A ruling is the answer to a claim.
type ruling struct {
	Verdict verdict
	// Holder holds the cluster or the identifier, if the verdict is Duplicate.
	Holder Key
	// Pinned means that the holder was loaded and must be looked up before its claim counts.
	Pinned bool
	// SameCluster means that the cluster is held, not only the identifier.
	SameCluster bool
	// Freed are the enrolments that were refused because of what the claimant just gave up.
	Freed []Key
}

// newArbiter returns an arbiter without claims.
func newArbiter() *arbiter {
	return &arbiter{
		claims: map[Key]claim{}, byUID: map[string]Key{}, byIdentifier: map[string]Key{},
		refused: objects.Index[Key, Key]{}, waitsFor: map[Key]Key{},
	}
}

// pin loads a claim from before the start. Of two pins for the same cluster, the first loaded wins.
func (a *arbiter) pin(k Key, p Pin) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := claim{UID: p.UID, Identifier: cmp.Or(p.Identifier, p.UID), ObjectUID: p.ObjectUID, Pinned: true}
	if c.UID == "" {
		return
	}
	if _, taken := a.byUID[c.UID]; taken {
		return
	}
	if _, taken := a.byIdentifier[c.Identifier]; taken {
		return
	}
	a.setLocked(k, c)
}

// claim claims a cluster and an identifier for an enrolment. A claim that was granted before is granted again; with
// another identifier, the old one is given up only if the new one is free.
func (a *arbiter) claim(k Key, object types.UID, uid, identifier string) ruling {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.stopWaitingLocked(k)
	if uid == a.hubUID {
		return ruling{Verdict: verdictHub}
	}
	var freed []Key
	own, held := a.claims[k]
	if held {
		switch {
		case own.ObjectUID != "" && own.ObjectUID != object:
			held, freed = false, a.releaseLocked(k) // Of an earlier object of this name.
		case own.UID != uid:
			return ruling{Verdict: verdictIdentityChanged}
		}
	}
	if h, taken := a.byUID[uid]; taken && h != k {
		return a.refuseLocked(k, ruling{Holder: h, SameCluster: true, Freed: freed})
	}
	if h, taken := a.byIdentifier[identifier]; taken && h != k {
		return a.refuseLocked(k, ruling{Holder: h, Freed: freed})
	}
	if held {
		delete(a.byIdentifier, own.Identifier)
		if own.Identifier != identifier {
			freed = a.freeLocked(k)
		}
	}
	a.setLocked(k, claim{UID: uid, Identifier: identifier, ObjectUID: object})
	return ruling{Verdict: verdictGranted, Freed: freed}
}

// refuseLocked records that an enrolment waits for a holder.
func (a *arbiter) refuseLocked(k Key, r ruling) ruling {
	a.refused.Insert(r.Holder, k)
	a.waitsFor[k] = r.Holder
	r.Verdict, r.Pinned = verdictDuplicate, a.claims[r.Holder].Pinned
	return r
}

// freeLocked returns the enrolments that were refused because of a holder, and ends their wait.
func (a *arbiter) freeLocked(holder Key) []Key {
	if len(a.refused[holder]) == 0 {
		return nil
	}
	freed := a.refused.Values(holder)
	for _, k := range freed {
		a.stopWaitingLocked(k)
	}
	return freed
}

func (a *arbiter) stopWaitingLocked(k Key) {
	if holder, waits := a.waitsFor[k]; waits {
		a.refused.Delete(holder, k)
		delete(a.waitsFor, k)
	}
}

// confirm records that a pinned enrolment still exists.
func (a *arbiter) confirm(k Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.claims[k]; ok {
		c.Pinned = false
		a.claims[k] = c
	}
}

// release gives up what an enrolment holds or waits for, and returns the enrolments that were refused because of it.
func (a *arbiter) release(k Key) (freed []Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopWaitingLocked(k)
	return a.releaseLocked(k)
}

// held returns what an enrolment holds.
func (a *arbiter) held(k Key) (claim, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.claims[k]
	return c, ok
}

// holder returns the holder of an identifier.
func (a *arbiter) holder(identifier string) (Key, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.byIdentifier[identifier]
	return k, ok
}

func (a *arbiter) setLocked(k Key, c claim) {
	a.claims[k] = c
	a.byUID[c.UID] = k
	a.byIdentifier[c.Identifier] = k
}

func (a *arbiter) releaseLocked(k Key) (freed []Key) {
	c, ok := a.claims[k]
	if !ok {
		return nil
	}
	delete(a.claims, k)
	delete(a.byUID, c.UID)
	delete(a.byIdentifier, c.Identifier)
	return a.freeLocked(k)
}
