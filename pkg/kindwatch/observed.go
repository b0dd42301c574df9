// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// maxObserved is how many objects wait at once for the watch to catch up.
const maxObserved = 10_000

// observe puts an object in front of what is known until the watch has come as far.
func (s *store) observe(obj *unstructured.Unstructured) {
	i, ok := s.hold(obj)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The answer to a write can arrive later than the watch event of it, and of what happened to the object afterwards.
	if !newerVersion(i.ResourceVersion, s.reached) {
		return
	}
	if known := s.known.items[i.Key]; known != nil && known.UID == i.UID && !newer(i, known) {
		return
	}
	if seen := s.observed.items[i.Key]; seen != nil && seen.UID == i.UID && !newer(i, seen) {
		return
	}
	// What is written one by one is bounded by the same number: whoever cannot keep it goes without.
	if s.closed || len(s.observed.items) >= maxObserved {
		return
	}
	s.keepObserved(i)
}

// keepObserved charges what is observed like what is known, since an API server decides how large its answers are and
// how long its watch is behind them. What is too much is not kept. The caller holds mu.
func (s *store) keepObserved(i *item) {
	s.forgetObserved(i.Key)
	if i.size == 0 {
		i.size = i.sizeOfPlace()
	}
	if err := s.budget.hold(1, i.size); err != nil {
		_ = s.budget.hold(-1, -i.size)
		return
	}
	s.observed.put(i)
}

// forgetObserved has what is known of an object be seen again. The caller holds mu.
func (s *store) forgetObserved(key types.NamespacedName) {
	if old := s.observed.items[key]; old != nil {
		_ = s.budget.hold(-1, -old.size)
		s.observed.remove(key)
	}
}

// caughtUp is told what the watch says of an object. It forgets what was observed of it up to there, and returns
// whether the watch says just that. The caller holds mu.
func (s *store) caughtUp(i *item) (echo bool) {
	o := s.observed.items[i.Key]
	if o == nil {
		return false
	}
	if o.UID != i.UID || !newer(o, i) {
		s.forgetObserved(i.Key)
	}
	return o.UID == i.UID && o.ResourceVersion == i.ResourceVersion
}

// reach notes how far the watch has come, and forgets what was observed up to there: the watch has reported it, or it
// was replaced or deleted before the watch could. The caller holds mu.
func (s *store) reach(version string) {
	s.reached, s.unswept = version, 0
	for key, o := range s.observed.items {
		if !newerVersion(o.ResourceVersion, version) {
			s.forgetObserved(key)
		}
	}
}

// advance is reach for one event of a watch. Of what was observed, most goes when the watch reports it; to look through
// all of it at every event would be quadratic when much is written. The caller holds mu.
func (s *store) advance(version string) {
	const few = 64
	if s.unswept++; len(s.observed.items) > few && s.unswept < len(s.observed.items)/few {
		s.reached = version
		return
	}
	s.reach(version)
}

// missed are the items that were observed, and of which neither what is known nor a list that is newer has anything:
// the objects were written and deleted while nobody watched. Whoever observed one waits to be told that it has gone.
// The caller holds mu.
func (s *store) missed(fresh indexer, listVersion string) []*item {
	var out []*item
	for key, o := range s.observed.items {
		if o.kept() && s.known.items[key] == nil && fresh.items[key] == nil && !newerVersion(o.ResourceVersion, listVersion) {
			out = append(out, o)
		}
	}
	return out
}
