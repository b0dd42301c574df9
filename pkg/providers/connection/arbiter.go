// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/setmap"
)

// arbiter decides which enrolment holds a cluster and an identifier. First come, first served, and the holder keeps
// both as long as it is enrolled, connected or not: a cluster that is down must not lose its identity to a newcomer.
type arbiter struct {
	hubUID string

	mu           sync.Mutex
	claims       map[Key]claim
	byUID        map[string]Key
	byIdentifier map[string]Key

	// refused are the enrolments that were refused because of what another one holds, by that one. waitsFor is the
	// inverse.
	refused  setmap.Map[Key, Key]
	waitsFor map[Key]Key
}

// claim is what one enrolment holds.
type claim struct {
	uid, identifier string
	// objectUID is the UID of the enrolled object, empty if it is not known.
	objectUID types.UID
	// pinned says that the claim was loaded, and that it is not known yet whether the enrolment still exists.
	pinned bool
}

type verdict string

const (
	verdictGranted         verdict = "Granted"
	verdictDuplicate       verdict = "Duplicate"
	verdictIdentityChanged verdict = "IdentityChanged"
	verdictHub             verdict = "Hub"
)

// ruling is the answer to a claim.
type ruling struct {
	verdict verdict
	// holder is who holds the cluster or the identifier, if the verdict is Duplicate.
	holder Key
	// pinned says that the holder was loaded, and has to be looked up before its claim counts.
	pinned bool
	// sameCluster says that it is the cluster that is held, and not only the identifier.
	sameCluster bool
	// freed are the enrolments that were refused because of what the one that claims has just given up.
	freed []Key
}

func newArbiter() *arbiter {
	return &arbiter{
		claims: map[Key]claim{}, byUID: map[string]Key{}, byIdentifier: map[string]Key{},
		refused: setmap.Map[Key, Key]{}, waitsFor: map[Key]Key{},
	}
}

// pin loads a claim from before the start. Of two pins for the same cluster, the first loaded wins.
func (a *arbiter) pin(k Key, p Pin) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.UID == "" {
		return
	}
	if p.Identifier == "" {
		p.Identifier = p.UID
	}
	if _, taken := a.byUID[p.UID]; taken {
		return
	}
	if _, taken := a.byIdentifier[p.Identifier]; taken {
		return
	}
	a.setLocked(k, claim{uid: p.UID, identifier: p.Identifier, objectUID: p.ObjectUID, pinned: true})
}

// claim asks for a cluster and an identifier on behalf of an enrolment. A claim that was granted before is granted
// again; with another identifier, the old one is given up only if the new one is free.
func (a *arbiter) claim(k Key, object types.UID, uid, identifier string) ruling {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.stopWaitingLocked(k)
	if uid == a.hubUID {
		return ruling{verdict: verdictHub}
	}
	var freed []Key
	own, held := a.claims[k]
	if held {
		switch {
		case own.objectUID != "" && own.objectUID != object:
			held, freed = false, a.releaseLocked(k) // Of an earlier object of this name.
		case own.uid != uid:
			return ruling{verdict: verdictIdentityChanged}
		}
	}
	if h, taken := a.byUID[uid]; taken && h != k {
		return a.refuseLocked(k, ruling{holder: h, sameCluster: true, freed: freed})
	}
	if h, taken := a.byIdentifier[identifier]; taken && h != k {
		return a.refuseLocked(k, ruling{holder: h, freed: freed})
	}
	if held {
		delete(a.byIdentifier, own.identifier)
		if own.identifier != identifier {
			freed = a.freeLocked(k)
		}
	}
	a.setLocked(k, claim{uid: uid, identifier: identifier, objectUID: object})
	return ruling{verdict: verdictGranted, freed: freed}
}

// refuseLocked has an enrolment wait for the one that holds what it asked for.
func (a *arbiter) refuseLocked(k Key, r ruling) ruling {
	a.refused.Insert(r.holder, k)
	a.waitsFor[k] = r.holder
	r.verdict, r.pinned = verdictDuplicate, a.claims[r.holder].pinned
	return r
}

// freeLocked returns the enrolments that were refused because of what another one held, and has them wait no longer.
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

// confirm says that a pinned enrolment still exists.
func (a *arbiter) confirm(k Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.claims[k]; ok {
		c.pinned = false
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

// holderOf returns who holds an identifier.
func (a *arbiter) holderOf(identifier string) (Key, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, ok := a.byIdentifier[identifier]
	return k, ok
}

func (a *arbiter) setLocked(k Key, c claim) {
	a.claims[k] = c
	a.byUID[c.uid] = k
	a.byIdentifier[c.identifier] = k
}

func (a *arbiter) releaseLocked(k Key) (freed []Key) {
	c, ok := a.claims[k]
	if !ok {
		return nil
	}
	delete(a.claims, k)
	delete(a.byUID, c.uid)
	delete(a.byIdentifier, c.identifier)
	return a.freeLocked(k)
}
