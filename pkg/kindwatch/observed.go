// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// maxObserved is how many observed objects can wait for the watch to catch up.
const maxObserved = 10_000

// observe makes an object override the cache until the watch has caught up with it.
func (s *store) observe(obj *unstructured.Unstructured) {
	i, ok := s.convert(obj)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The response to a write can arrive after its watch event, and after later events of the object: what is known is not
	// later than what the watch has reached.
	if !newerVersion(i.ResourceVersion, s.reached) {
		return
	}
	if seen := s.observed.items[i.Key]; seen != nil && seen.UID == i.UID && !newer(i, seen) {
		return
	}
	// Beyond this number, written objects are not observed.
	if s.closed || len(s.observed.items) >= maxObserved {
		return
	}
	s.keepObserved(i)
}

// keepObserved charges observed objects like cached ones, since an API server controls the size of its responses and
// the lag of its watch. Objects over budget are not kept. The caller holds mu.
func (s *store) keepObserved(i *Item) {
	s.forgetObserved(i.Key)
	if i.size == 0 {
		i.size = i.sizeOfPlace()
	}
	if err := s.budget.reserve(1, i.size); err != nil {
		_ = s.budget.reserve(-1, -i.size)
		return
	}
	s.observed.put(i)
}

// forgetObserved drops an observed object, so that the cached one is visible again. The caller holds mu.
func (s *store) forgetObserved(key types.NamespacedName) {
	if old := s.observed.items[key]; old != nil {
		_ = s.budget.reserve(-1, -old.size)
		s.observed.remove(key)
	}
}

// caughtUp receives an object from the watch. It drops an observed state that is not newer, and returns whether the
// watch reported exactly the observed state. The caller holds mu.
func (s *store) caughtUp(i *Item) (echo bool) {
	o := s.observed.items[i.Key]
	if o == nil {
		return false
	}
	if o.UID != i.UID || !newer(o, i) {
		s.forgetObserved(i.Key)
	}
	return o.UID == i.UID && o.ResourceVersion == i.ResourceVersion
}

// reach records the watch's resource version, and drops objects observed up to it: the watch has reported them, or they
// were replaced or deleted before it could. The caller holds mu.
func (s *store) reach(version string) {
	s.reached, s.unswept = version, 0
	for key, o := range s.observed.items {
		if !newerVersion(o.ResourceVersion, version) {
			s.forgetObserved(key)
		}
	}
}

// advance is reach for one event of a watch. Most observed objects are dropped when the watch reports them; scanning
// all of them on every event would be quadratic when much is written. The caller holds mu.
func (s *store) advance(version string) {
	const few = 64
	if s.unswept++; len(s.observed.items) > few && s.unswept < len(s.observed.items)/few {
		s.reached = version
		return
	}
	s.reach(version)
}

// missed returns the observed objects that are missing from both the store and a newer list: they were written and
// deleted while no watch was running, and another object may have their name. Their writers wait for a deletion event.
// The caller holds mu.
func (s *store) missed(fresh indexer, listVersion string) []*Item {
	var out []*Item
	for key, o := range s.observed.items {
		isThere := func(in indexer) bool { return in.items[key] != nil && in.items[key].UID == o.UID }
		if o.kept() && !isThere(s.known) && !isThere(fresh) && !newerVersion(o.ResourceVersion, listVersion) {
			out = append(out, o)
		}
	}
	return out
}
