// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// store holds the objects of one kind. It implements cache.ReflectorStore: one reflector writes it, one call after
// another, everybody reads it. Events are emitted without mu, so that handlers can read.
type store struct {
	kind     Kind
	emit     func(Event)
	onSynced func()

	// keepManager is the field manager of which objects keep what it manages.
	keepManager string

	mu      sync.RWMutex
	objects map[types.NamespacedName]*unstructured.Unstructured

	// observed are newer than objects: what somebody here wrote and the watch has not reported yet.
	observed map[types.NamespacedName]*unstructured.Unstructured

	// sizes are those of objects, and budget is what they may be together. overflow is called, without mu, when they are more.
	sizes    map[types.NamespacedName]int64
	budget   budget
	overflow func()
	closed   bool

	// arriving is what a list that is under way has brought.
	arriving meter

	// synced is whether objects are an answer to a question. When the kind stops being served they are kept, to find out
	// what changed when it is served again, and are not an answer meanwhile.
	synced bool

	// listed is whether a list has ever arrived.
	listed bool

	// reached is the resource version up to which the watch has reported everything.
	reached string
}

// maxObserved is how many objects wait at once for the watch to catch up.
const maxObserved = 10_000

var (
	_ cache.TransformingStore      = &store{}
	_ cache.ResourceVersionUpdater = &store{}
)

func newStore(kind Kind, emit func(Event), onSynced func()) *store {
	return &store{
		sizes:    map[types.NamespacedName]int64{},
		budget:   budget{perKind: Unlimited, total: Unlimited, all: &usage{}},
		overflow: func() {},
		arriving: meter{sizes: map[types.NamespacedName]int64{}},
		kind:     kind,
		emit:     emit,
		onSynced: onSynced,
		objects:  map[types.NamespacedName]*unstructured.Unstructured{},
		observed: map[types.NamespacedName]*unstructured.Unstructured{},
	}
}

func keyOf(obj *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Transformer makes the reflector trim objects while they stream in, before it has all of them.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		u, ok := s.kind.admitted(obj, s.keepManager)
		if !ok {
			return obj, nil
		}
		if !s.arrived(u) {
			return nil, errTooLarge
		}
		return u, nil
	}
}

// listing begins to count what a list brings.
func (s *store) listing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arriving.reset()
}

// arrivedPage counts a page of a list, and says whether the list is still within the budget.
func (s *store) arrivedPage(items []*unstructured.Unstructured) bool {
	s.mu.Lock()
	s.arriving.page()
	for _, u := range items {
		s.arriving.add(keyOf(u), sizeOf(u.Object))
	}
	return s.unlockIfFits()
}

// arrived is arrivedPage for one object of a stream.
func (s *store) arrived(u *unstructured.Unstructured) bool {
	s.mu.Lock()
	s.arriving.add(keyOf(u), sizeOf(u.Object))
	return s.unlockIfFits()
}

func (s *store) unlockIfFits() bool {
	fits := s.budget.fits(int64(len(s.arriving.sizes)), s.arriving.bytes)
	if !fits {
		s.arriving.reset()
	}
	s.mu.Unlock()
	if !fits {
		s.overflow()
	}
	return fits
}

// put keeps an object if there is room for it. The caller holds mu.
func (s *store) put(key types.NamespacedName, u *unstructured.Unstructured) bool {
	size, objects := sizeOf(u.Object), int64(0)
	if s.objects[key] == nil {
		objects = 1
	}
	if s.closed || s.budget.hold(objects, size-s.sizes[key]) {
		if !s.closed {
			s.budget.hold(-objects, s.sizes[key]-size)
		}
		return false
	}
	s.objects[key], s.sizes[key] = u, size
	return true
}

// replaceSizes makes room for objects instead of those that are held. The caller holds mu.
func (s *store) replaceSizes(fresh map[types.NamespacedName]*unstructured.Unstructured) bool {
	sizes, bytes := make(map[types.NamespacedName]int64, len(fresh)), int64(0)
	for key, u := range fresh {
		sizes[key] = sizeOf(u.Object)
		bytes += sizes[key]
	}
	if s.closed || !s.budget.fits(int64(len(fresh)), bytes) {
		return false
	}
	s.budget.hold(int64(len(fresh))-s.budget.objects, bytes-s.budget.bytes)
	s.sizes = sizes
	return true
}

// drop forgets every object without a word. What is listed next is as if it was the first time.
func (s *store) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects, s.observed = map[types.NamespacedName]*unstructured.Unstructured{}, map[types.NamespacedName]*unstructured.Unstructured{}
	s.sizes = map[types.NamespacedName]int64{}
	s.synced, s.listed = false, false
	s.arriving.reset()
	s.budget.release()
}

// close is drop for good.
func (s *store) close() {
	s.drop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Add is called by the reflector.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update is called by the reflector.
func (s *store) Update(obj any) error {
	u, ok := s.kind.admitted(obj, s.keepManager)
	if !ok {
		return nil
	}
	key := keyOf(u)

	s.mu.Lock()
	old := s.objects[key]
	if !s.put(key, u) {
		s.mu.Unlock()
		s.overflow()
		return nil
	}
	o := s.observed[key]
	echo := o != nil && o.GetUID() == u.GetUID() && o.GetResourceVersion() == u.GetResourceVersion()
	if o != nil && (o.GetUID() != u.GetUID() || !newer(o, u)) {
		delete(s.observed, key)
	}
	s.mu.Unlock()

	s.changed(old, u, Event{Echo: echo})
	return nil
}

// Delete is called by the reflector.
func (s *store) Delete(obj any) error {
	u, ok := s.kind.admitted(obj, s.keepManager)
	if !ok {
		return nil
	}
	key := keyOf(u)

	s.mu.Lock()
	_, known := s.objects[key]
	if known {
		s.budget.hold(-1, -s.sizes[key])
	}
	delete(s.objects, key)
	delete(s.sizes, key)
	if o := s.observed[key]; o != nil && o.GetUID() == u.GetUID() {
		delete(s.observed, key)
	}
	s.mu.Unlock()

	if known {
		s.emit(Event{Type: Deleted, Kind: s.kind, Object: u})
	}
	return nil
}

// Replace is called by the reflector with the result of a list.
func (s *store) Replace(objs []any, listVersion string) error {
	fresh := make(map[types.NamespacedName]*unstructured.Unstructured, len(objs))
	for _, obj := range objs {
		u, ok := s.kind.admitted(obj, s.keepManager)
		if ok {
			fresh[keyOf(u)] = u
		}
	}

	s.mu.Lock()
	s.arriving.reset()
	if !s.replaceSizes(fresh) {
		s.mu.Unlock()
		s.overflow()
		return errTooLarge
	}
	old := s.objects
	initial := !s.listed
	s.objects, s.synced, s.listed = fresh, true, true
	s.reach(listVersion)
	s.mu.Unlock()

	for key, u := range old {
		if fresh[key] == nil {
			s.emit(Event{Type: Deleted, Kind: s.kind, Object: u, Relisted: true})
		}
	}
	for key, u := range fresh {
		s.changed(old[key], u, Event{Initial: initial})
	}
	s.onSynced()
	return nil
}

// UpdateResourceVersion is called by the reflector after every event and bookmark.
func (s *store) UpdateResourceVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reach(version)
}

// reach notes how far the watch has come, and forgets what was observed up to there: the watch has reported it, or it was
// replaced or deleted before the watch could. The caller holds mu.
func (s *store) reach(version string) {
	s.reached = version
	for key, o := range s.observed {
		if !newerVersion(o.GetResourceVersion(), version) {
			delete(s.observed, key)
		}
	}
}

// Resync is called by reflectors that resync, which ours do not.
func (s *store) Resync() error { return nil }

// changed reports an object. How it became known is in the event.
func (s *store) changed(old, u *unstructured.Unstructured, e Event) {
	e.Kind, e.Object = s.kind, u
	switch {
	case old == nil:
		e.Type = Added
	case old.GetUID() != u.GetUID():
		s.emit(Event{Type: Deleted, Kind: s.kind, Object: old, Relisted: true})
		e.Type = Added
	case old.GetResourceVersion() != u.GetResourceVersion():
		e.Type, e.Old, e.Initial = Updated, old, false
	default:
		return
	}
	s.emit(e)
}

func (s *store) unsync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = false
}

func (s *store) isSynced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}

func (s *store) observe(obj *unstructured.Unstructured) {
	obj, ok := s.kind.admitted(obj, s.keepManager)
	if !ok {
		return
	}
	key := keyOf(obj)
	s.mu.Lock()
	defer s.mu.Unlock()
	// The answer to a write can arrive later than the watch event of it, and of what happened to the object afterwards.
	if !newerVersion(obj.GetResourceVersion(), s.reached) {
		return
	}
	if known := s.objects[key]; known != nil && known.GetUID() == obj.GetUID() && !newer(obj, known) {
		return
	}
	if seen := s.observed[key]; seen != nil && seen.GetUID() == obj.GetUID() && !newer(obj, seen) {
		return
	}
	// What is written one by one is bounded by the same number: whoever cannot keep it goes without.
	if s.closed || len(s.observed) >= maxObserved {
		return
	}
	s.observed[key] = obj
}

func (s *store) get(key types.NamespacedName) (*unstructured.Unstructured, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.synced {
		return nil, false
	}
	if o := s.observed[key]; o != nil {
		return o, true
	}
	return s.objects[key], true
}

func (s *store) list() ([]*unstructured.Unstructured, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.synced {
		return nil, false
	}
	out := make([]*unstructured.Unstructured, 0, len(s.objects)+len(s.observed))
	for key, u := range s.objects {
		if s.observed[key] == nil {
			out = append(out, u)
		}
	}
	for _, o := range s.observed {
		out = append(out, o)
	}
	return out, true
}

// newer is whether a is a later state than b of the same object.
func newer(a, b *unstructured.Unstructured) bool {
	return newerVersion(a.GetResourceVersion(), b.GetResourceVersion())
}

// newerVersion is whether resource version a is later than b. Versions that cannot be compared are not: then the watch is
// believed.
func newerVersion(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c > 0
}
