// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// arbiter decides which enrolment holds a cluster and an identifier. First come, first served, and the holder keeps both as
// long as it is enrolled, connected or not: a cluster that is down must not lose its identity to a newcomer.
type arbiter struct {
	hubUID string

	mu           sync.Mutex
	claims       map[Key]claim
	byUID        map[string]Key
	byIdentifier map[string]Key
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
}

func newArbiter() *arbiter {
	return &arbiter{claims: map[Key]claim{}, byUID: map[string]Key{}, byIdentifier: map[string]Key{}}
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

	if uid == a.hubUID {
		return ruling{verdict: verdictHub}
	}
	if own, ok := a.claims[k]; ok {
		switch {
		case own.objectUID != "" && own.objectUID != object:
			a.releaseLocked(k) // Of an earlier object of this name.
		case own.uid != uid:
			return ruling{verdict: verdictIdentityChanged}
		}
	}
	if h, taken := a.byUID[uid]; taken && h != k {
		return ruling{verdict: verdictDuplicate, holder: h, pinned: a.claims[h].pinned, sameCluster: true}
	}
	if h, taken := a.byIdentifier[identifier]; taken && h != k {
		return ruling{verdict: verdictDuplicate, holder: h, pinned: a.claims[h].pinned}
	}
	a.releaseLocked(k)
	a.setLocked(k, claim{uid: uid, identifier: identifier, objectUID: object})
	return ruling{verdict: verdictGranted}
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

// release gives up what an enrolment holds, and says whether it held anything.
func (a *arbiter) release(k Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
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

func (a *arbiter) releaseLocked(k Key) bool {
	c, ok := a.claims[k]
	if !ok {
		return false
	}
	delete(a.claims, k)
	delete(a.byUID, c.uid)
	delete(a.byIdentifier, c.identifier)
	return true
}
