// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
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

// budget is what one kind may hold. It is used under the lock of its store.
type budget struct {
	perKind, total Limit
	all            *usage

	// listed is how many objects that are not kept a list may bring.
	listed int64

	// held is what the store of the kind holds, which is part of all.
	objects, bytes int64
}

// hold changes what is held, and says whether that is too much.
func (b *budget) hold(objects, bytes int64) bool {
	b.objects += objects
	b.bytes += bytes
	allObjects, allBytes := b.all.objects.Add(objects), b.all.bytes.Add(bytes)
	return b.perKind.exceededBy(b.objects, b.bytes) || b.total.exceededBy(allObjects, allBytes)
}

// fits is whether so much could be held instead of what is.
func (b *budget) fits(objects, bytes int64) bool {
	return !b.perKind.exceededBy(objects, bytes) &&
		!b.total.exceededBy(b.all.objects.Load()-b.objects+objects, b.all.bytes.Load()-b.bytes+bytes)
}

// admits returns why a list that is under way cannot be kept, or nil.
func (b *budget) admits(m *meter) error {
	switch {
	case b.listed >= 0 && m.passed > b.listed:
		return errTooMany
	case !b.fits(int64(len(m.sizes)), m.bytes):
		return errTooLarge
	}
	return nil
}

func (b *budget) release() { b.hold(-b.objects, -b.bytes) }

// meter adds up what a list that is still under way has brought, in pages or as a stream. A page counts as an object, so that
// pages which bring none come to an end, too.
type meter struct {
	sizes map[types.NamespacedName]int64
	pages int
	bytes int64

	// passed is how many objects were not kept.
	passed int64
}

func newMeter() meter { return meter{sizes: map[types.NamespacedName]int64{}} }

func (m *meter) reset() { *m = newMeter() }

func (m *meter) add(key types.NamespacedName, size int64) {
	m.bytes += size - m.sizes[key]
	m.sizes[key] = size
}

// page counts a page. Names of objects have no slash.
func (m *meter) page() {
	m.pages++
	m.add(types.NamespacedName{Name: "/" + strconv.Itoa(m.pages)}, 0)
}

// sizeOf is about what a value of an object takes in memory.
func sizeOf(v any) int64 {
	const word = 16
	size := int64(word)
	switch v := v.(type) {
	case string:
		size += int64(len(v))
	case map[string]any:
		for k, e := range v {
			size += word + int64(len(k)) + sizeOf(e)
		}
	case []any:
		for _, e := range v {
			size += sizeOf(e)
		}
	}
	return size
}
