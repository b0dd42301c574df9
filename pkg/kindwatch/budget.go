// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/budget"
)

// Errors that end an attempt to watch a kind that is too large.
var (
	// errTooLarge: more is kept than the budget allows.
	errTooLarge = errors.New("the kind is larger than its budget")

	// errTooMany: a list brings more objects than are looked at, of which few may be kept.
	errTooMany = errors.New("the kind has more objects than are looked at")
)

// A Limit bounds what is kept in memory. A number that is negative is no bound; zero takes the default.
type Limit struct {
	Objects int64

	// Bytes is approximate: what the strings and the structure of the objects take.
	Bytes int64
}

// Default limits of a Watcher.
const (
	DefaultObjectsPerKind = 20_000
	DefaultBytesPerKind   = 64 << 20
	DefaultObjects        = 100_000
	DefaultBytes          = 256 << 20

	// DefaultListed is for Options.Listed. What is not kept takes about 100 bytes while the list is under way.
	DefaultListed = 250_000
)

// Unlimited bounds nothing. It is for a cluster that is trusted.
var Unlimited = Limit{Objects: -1, Bytes: -1} //nolint:gochecknoglobals // A constant.

func (l Limit) withDefaults(objects, bytes int64) Limit {
	if l.Objects == 0 {
		l.Objects = objects
	}
	if l.Bytes == 0 {
		l.Bytes = bytes
	}
	return l
}

func (l Limit) exceededBy(objects, bytes int64) bool {
	return l.Objects >= 0 && objects > l.Objects || l.Bytes >= 0 && bytes > l.Bytes
}

// usage is what all kinds of a Watcher hold together.
type usage struct{ objects, bytes atomic.Int64 }

// allowance is what one kind may hold. It is used under the lock of its store.
type allowance struct {
	perKind, total Limit
	all            *usage

	// holder is charged with what is held and what is arriving; nil if nobody counts.
	holder *budget.Holder

	// listed is how many objects that are not kept a list may bring.
	listed int64

	// objects and bytes are what the store of the kind holds, which is part of all. arriving is about how many bytes a
	// list that is under way has brought.
	objects, bytes, arriving int64
}

// hold changes what is held, and returns why that is too much, or nil. It is changed in any case.
func (b *allowance) hold(objects, bytes int64) error {
	b.objects += objects
	b.bytes += bytes
	allObjects, allBytes := b.all.objects.Add(objects), b.all.bytes.Add(bytes)
	err := b.charge()
	if b.perKind.exceededBy(b.objects, b.bytes) || b.total.exceededBy(allObjects, allBytes) {
		return errTooLarge
	}
	return err
}

// charge has the process's budget know what is held.
func (b *allowance) charge() error { return b.holder.Hold(b.bytes + b.arriving) }

// arrive changes what a list that is under way has brought.
func (b *allowance) arrive(m *meter) error {
	const perPassed = 100
	b.arriving = m.bytes + m.passed*perPassed + m.names
	return b.charge()
}

// fits is whether so much could be held instead of what is.
func (b *allowance) fits(objects, bytes int64) bool {
	return !b.perKind.exceededBy(objects, bytes) &&
		!b.total.exceededBy(b.all.objects.Load()-b.objects+objects, b.all.bytes.Load()-b.bytes+bytes)
}

// admits returns why a list that is under way cannot be kept, or nil.
func (b *allowance) admits(m *meter) error {
	switch {
	case b.listed >= 0 && m.passed > b.listed:
		return errTooMany
	case !b.fits(int64(len(m.sizes)), m.bytes+m.names):
		return errTooLarge
	}
	return b.arrive(m)
}

func (b *allowance) release() { _ = b.hold(-b.objects, -b.bytes) }

// meter adds up what a list that is still under way has brought, in pages or as a stream. A page counts as an object,
// so that pages which bring none come to an end, too.
type meter struct {
	sizes map[types.NamespacedName]int64
	pages int
	bytes int64

	// passed is how many objects were not kept, and names how long their names are beyond what is usual.
	passed, names int64
}

func newMeter() meter { return meter{sizes: map[types.NamespacedName]int64{}} }

func (m *meter) reset() { *m = newMeter() }

func (m *meter) add(key types.NamespacedName, size int64) {
	m.bytes += size - m.sizes[key]
	m.sizes[key] = size
}

// pass counts an object of a stream that is not kept. It may have a name that no object can have.
func (m *meter) pass(sent any) {
	const usual = 64
	m.passed++
	if o, ok := sent.(metav1.Object); ok {
		m.names += max(0, int64(len(o.GetNamespace())+len(o.GetName()))-usual)
	}
}

// page counts a page. Names of objects have no slash.
func (m *meter) page() {
	m.pages++
	m.add(types.NamespacedName{Name: "/" + strconv.Itoa(m.pages)}, 0)
}

// sizeOf is about what a value of an object takes in memory.
func sizeOf(v any) int64 {
	const (
		header   = 24  // Of a string or slice, rounded up, or another value that is put into an interface.
		slot     = 16  // An interface.
		emptyMap = 48  // And no slots.
		group    = 264 // Eight slots of a small map.
		entry    = 48  // One of a large map, with its part of what is free.
	)
	size := int64(slot)
	switch v := v.(type) {
	case string:
		size += header + int64(len(v))
	case map[string]any:
		size += emptyMap
		if len(v) > 0 {
			size += max(group, entry*int64(len(v)))
		}
		for k, e := range v {
			size += int64(len(k)) + sizeOf(e)
		}
	case []any:
		size += header
		for _, e := range v {
			size += sizeOf(e)
		}
	default:
		size += header
	}
	return size
}
