// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"sync"

	"k8s.io/client-go/util/workqueue"

	"github.com/masthead-dev/masthead/pkg/objects"
)

// records holds the records of all enrolments, and the work queue of their keys. Mappings from classes and namespaces
// are indexed: at start, each class and each namespace of the hub is an event.
type records struct {
	mu                   sync.RWMutex
	byKey                map[Key]*record
	byClass, byNamespace objects.Index[string, Key]
	queue                workqueue.TypedRateLimitingInterface[Key]
	// pins are those whose enrolments were not reconciled yet; nil before they are loaded.
	pins map[Key]Pin
}

func newRecords() *records {
	return &records{byKey: map[Key]*record{}, byClass: objects.Index[string, Key]{}, byNamespace: objects.Index[string, Key]{}}
}

// get returns the record of a key, or nil.
func (rs *records) get(k Key) *record {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return rs.byKey[k]
}

// pin loads the pins.
func (rs *records) pin(pins map[Key]Pin) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.pins = pins
}

// getPin returns the pin of an enrolment that was not reconciled yet.
func (rs *records) getPin(k Key) (Pin, bool) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	p, ok := rs.pins[k]
	return p, ok
}

func (rs *records) dropPin(k Key) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.pins, k)
}

// mayLeave reports whether an enrolment without a record may have to be offboarded.
func (rs *records) mayLeave(k Key) bool {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	_, pinned := rs.pins[k]
	return pinned || rs.pins == nil
}

func (rs *records) add(r *record) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.byKey[r.key] = r
	rs.byClass.Insert(r.class, r.key)
	rs.byNamespace.Insert(r.key.Namespace, r.key)
}

// setClass sets the class that an enrolment currently names.
func (rs *records) setClass(r *record, class string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.class == class {
		return
	}
	rs.byClass.Delete(r.class, r.key)
	r.class = class
	rs.byClass.Insert(class, r.key)
}

func (rs *records) remove(r *record) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.byKey, r.key)
	rs.byClass.Delete(r.class, r.key)
	rs.byNamespace.Delete(r.key.Namespace, r.key)
}

// ofClass returns the enrolments that name a class.
func (rs *records) ofClass(class string) []Key {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return rs.byClass.Values(class)
}

// ofNamespace returns the enrolments of a namespace of the hub.
func (rs *records) ofNamespace(namespace string) []Key {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return rs.byNamespace.Values(namespace)
}

// wakeBy sets the queue used by wake. Before that, wake does nothing.
func (rs *records) wakeBy(q workqueue.TypedRateLimitingInterface[Key]) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.queue = q
	for k := range rs.pins {
		q.Add(k) // Its object may be gone.
	}
}

// wake requeues a key.
func (rs *records) wake(k Key) {
	rs.mu.RLock()
	q := rs.queue
	rs.mu.RUnlock()
	if q != nil {
		q.Add(k)
	}
}

// retry retries enrolments that were refused because of what is now released.
func (rs *records) retry(keys []Key) {
	rs.mu.RLock()
	for _, k := range keys {
		if r, ok := rs.byKey[k]; ok {
			r.retryNow.Store(true)
		}
	}
	rs.mu.RUnlock()
	for _, k := range keys {
		rs.wake(k)
	}
}
