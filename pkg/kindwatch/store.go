// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// store holds the items of one kind. One goroutine lists and watches, and reads are concurrent. Events are emitted
// without mu, so that handlers can read.
type store struct {
	converter
	emit     func(Event)
	onSynced func()

	mu    sync.RWMutex
	known indexer

	// observed items override known: Masthead wrote them and the watch has not reported them yet. One that is not kept
	// hides the known item.
	observed indexer

	// budget limits known and observed together. overflow is called, without mu, when it is exceeded.
	budget   allowance
	overflow func(error)
	closed   bool

	// arriving measures the list in progress.
	arriving meter

	// synced is set while known may be returned to readers. When the kind stops being served, known is kept to compute the
	// changes when it is served again, but not returned meanwhile.
	synced bool

	// listed is set once a list has arrived.
	listed bool

	// reached is the resource version up to which the watch has reported everything, and unswept the number of events
	// since all observed items were compared with it.
	reached string
	unswept int
}

func newStore(kind Kind, emit func(Event), onSynced func()) *store {
	return &store{
		converter: newConverter(kind),
		budget:    allowance{perKind: Unlimited, total: Unlimited, listed: -1, all: &usage{}},
		overflow:  func(error) {},
		arriving:  newMeter(),
		emit:      emit,
		onSynced:  onSynced,
		known:     newIndexer(),
		observed:  newIndexer(),
	}
}

func objectKey(obj *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// listing starts measuring a list.
func (s *store) listing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetArriving()
}

// arrivedPage counts a page of a list, and returns an error if the list is over the budget.
func (s *store) arrivedPage(items []*Item, passed int) error {
	s.mu.Lock()
	s.arriving.pages++
	s.arriving.passed += int64(passed)
	for _, i := range items {
		s.arriving.add(i.Key, i.size)
	}
	return s.unlockUnlessOver()
}

// arrivedEvent converts an object of a watch's initial events and counts it, as arrivedPage does. The item is nil if
// the object cannot be one of the kind.
func (s *store) arrivedEvent(obj runtime.Object) (*Item, error) {
	i, ok := s.convert(obj)
	s.mu.Lock()
	if ok && i.kept() {
		s.arriving.add(i.Key, i.size)
	} else {
		s.arriving.passed++
	}
	return i, s.unlockUnlessOver()
}

func (s *store) unlockUnlessOver() error {
	err := s.budget.admits(&s.arriving)
	if err != nil {
		s.forgetArriving()
	}
	s.mu.Unlock()
	if err != nil {
		s.overflow(err)
	}
	return err
}

// put stores an item, or removes the object if nothing is kept of it. It returns an error if there is no room. The
// caller holds mu.
func (s *store) put(i *Item) error {
	if !i.kept() {
		s.remove(i.Key)
		return nil
	}
	objects, bytes := int64(1), i.size
	if old := s.known.items[i.Key]; old != nil {
		objects, bytes = 0, i.size-old.size
	}
	if s.closed {
		return errTooLarge
	}
	if err := s.budget.reserve(objects, bytes); err != nil {
		_ = s.budget.reserve(-objects, -bytes)
		return err
	}
	s.known.put(i)
	return nil
}

// keepAgain replaces what is stored of an object if it is stored in this state.
func (s *store) keepAgain(obj *unstructured.Unstructured) {
	i, ok := s.convert(obj)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(stored *Item) bool {
		return stored != nil && stored.UID == i.UID && stored.ResourceVersion == i.ResourceVersion
	}
	if same(s.known.items[i.Key]) {
		_ = s.put(i) // Without room, what is stored stays.
	}
	if same(s.observed.items[i.Key]) {
		s.keepObserved(i)
	}
}

// remove removes an object. The caller holds mu.
func (s *store) remove(key types.NamespacedName) {
	if old := s.known.items[key]; old != nil {
		_ = s.budget.reserve(-1, -old.size)
		s.known.remove(key)
	}
}

// drop removes everything without events. The next list counts as the first.
func (s *store) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropAll()
}

// close is drop for good.
func (s *store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropAll()
	s.closed = true
	s.budget.holder.Close()
}

// dropAll is drop for callers that hold mu.
func (s *store) dropAll() {
	s.known, s.observed = newIndexer(), newIndexer()
	s.synced, s.listed = false, false
	s.forgetArriving()
	s.budget.release()
}

// forgetArriving resets the measurement when a list begins or ends. The caller holds mu.
func (s *store) forgetArriving() {
	s.arriving = newMeter()
	_ = s.budget.arrive(&s.arriving) // Less is always granted.
}

// update stores an object that the watch reports.
func (s *store) update(obj runtime.Object) {
	i, ok := s.convert(obj)
	if !ok {
		return
	}
	s.mu.Lock()
	old := s.known.items[i.Key]
	if err := s.put(i); err != nil {
		s.mu.Unlock()
		s.overflow(err)
		return
	}
	echo := s.caughtUp(i)
	s.mu.Unlock()

	s.changed(old, i, Event{SelfInduced: echo})
}

// delete removes an object that the watch reports as deleted.
func (s *store) delete(obj runtime.Object) {
	u, ok := s.kind.admitted(obj, s.keepManager)
	if !ok {
		return
	}
	key := objectKey(u)

	s.mu.Lock()
	old := s.known.items[key]
	s.remove(key)
	if o := s.observed.items[key]; o != nil && o.UID == u.GetUID() {
		s.forgetObserved(key)
	}
	s.mu.Unlock()

	if old != nil && old.metadata != nil {
		s.emit(Event{Type: Deleted, Kind: s.kind, Object: u})
	} else if old != nil {
		s.report(Deleted, old, Event{})
	}
}

// replace replaces everything by the items of a list.
func (s *store) replace(all []*Item, listVersion string) error {
	fresh := newIndexerFrom(all)

	s.mu.Lock()
	s.forgetArriving()
	objects, bytes := s.together(fresh)
	var err error
	if s.closed || !s.budget.fits(objects, bytes) {
		err = errTooLarge
	} else if err = s.budget.reserve(objects-s.budget.objects, bytes-s.budget.bytes); err != nil {
		objects, bytes = s.together(s.known)
		_ = s.budget.reserve(objects-s.budget.objects, bytes-s.budget.bytes)
	}
	if err != nil {
		s.mu.Unlock()
		s.overflow(err)
		return err
	}
	old := s.known
	initial := !s.listed
	missed := s.missed(fresh, listVersion)
	s.known, s.synced, s.listed = fresh, true, true
	s.reach(listVersion)
	s.mu.Unlock()

	for key, i := range old.items {
		if fresh.items[key] == nil {
			s.report(Deleted, i, Event{Relisted: true})
		}
	}
	for _, i := range missed {
		s.report(Deleted, i, Event{Relisted: true})
	}
	for _, i := range all {
		if fresh.items[i.Key] == i {
			s.changed(old.items[i.Key], i, Event{Initial: initial})
		}
	}
	s.onSynced()
	return nil
}

// together returns the total of the given items and the observed ones. The caller holds mu.
func (s *store) together(items indexer) (objects, bytes int64) {
	return int64(len(items.items) + len(s.observed.items)), items.bytes() + s.observed.bytes()
}

// advanceTo records the resource version of an event or bookmark, after the event.
func (s *store) advanceTo(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(version)
}

// changed reports a change of an object. The event says how it was seen.
func (s *store) changed(old, i *Item, e Event) {
	switch {
	case old == nil:
		if i.kept() {
			s.report(Added, i, e)
		}
	case !i.kept():
		s.report(Deleted, old, e)
	case old.UID != i.UID:
		s.report(Deleted, old, Event{Relisted: true})
		s.report(Added, i, e)
	case !i.sameAs(old):
		e.Initial, e.Old = false, old.Object()
		if old.Record != nil {
			e.OldEntry = &old.Entry
		}
		s.report(Updated, i, e)
	}
}

// report reports an item.
func (s *store) report(t EventType, i *Item, e Event) {
	e.Type, e.Kind, e.Object = t, s.kind, i.Object()
	if i.Record != nil {
		e.Entry = &i.Entry
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

// get returns the item of an object, or nil, and whether the store is synced.
func (s *store) get(key types.NamespacedName) (*Item, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.synced {
		return nil, false
	}
	i := s.known.items[key]
	if o := s.observed.items[key]; o != nil {
		i = o
	}
	if !i.kept() {
		return nil, true
	}
	return i, true
}

func (s *store) list() ([]*Item, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.synced {
		return nil, false
	}
	out := make([]*Item, 0, len(s.known.items)+len(s.observed.items))
	for key, i := range s.known.items {
		if s.observed.items[key] == nil {
			out = append(out, i)
		}
	}
	for _, o := range s.observed.items {
		if o.kept() {
			out = append(out, o)
		}
	}
	return out, true
}

// lookup returns the items with an index key, in no order.
func (s *store) lookup(indexKey string) ([]*Item, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.synced {
		return nil, false
	}
	return s.merged(s.known.index[indexKey], s.observed.index[indexKey]), true
}

// namespace returns the objects of a namespace, and whether the store is synced.
func (s *store) namespace(name string) ([]*Item, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.synced {
		return nil, false
	}
	return s.merged(s.known.namespaces[name], s.observed.namespaces[name]), true
}

// merged replaces known items by observed ones. The caller holds mu.
func (s *store) merged(known, observed []*Item) []*Item {
	out := make([]*Item, 0, len(known)+len(observed))
	for _, i := range known {
		if s.observed.items[i.Key] == nil {
			out = append(out, i)
		}
	}
	return append(out, observed...)
}

// newer reports whether a is a later state than b of the same object.
func newer(a, b *Item) bool { return newerVersion(a.ResourceVersion, b.ResourceVersion) }

// newerVersion reports whether resource version a is later than b. It is false for versions that cannot be compared:
// then the watch wins.
func newerVersion(a, b string) bool {
	if len(a) > maxVersion || len(b) > maxVersion {
		return false
	}
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c > 0
}
