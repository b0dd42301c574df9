// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// Errors that end an attempt to watch a kind that is too large.
var (
	// errTooLarge: the stored objects exceed the budget.
	errTooLarge = errors.New("the kind is larger than its budget")

	// errTooMany: a list has more objects than are processed, even if few are kept.
	errTooMany = errors.New("the kind has more objects than are read")
)

// A Limit bounds what is kept in memory. A negative number means no limit; zero means the default.
type Limit struct {
	Objects int64

	// Bytes is approximate: the memory for strings and structure of the objects.
	Bytes int64
}

// Default limits of a Watcher.
const (
	DefaultObjectsPerKind = 20_000
	DefaultBytesPerKind   = 64 << 20
	DefaultObjects        = 100_000
	DefaultBytes          = 256 << 20

	// DefaultListed is for Options.Listed. An object that is not kept takes about 100 bytes while the list is in progress.
	DefaultListed = 250_000
)

// Unlimited sets no limit. It is for a trusted cluster.
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

// usage is the total of all kinds of a Watcher.
type usage struct{ objects, bytes atomic.Int64 }

// allowance is the budget of one kind. It is used under the lock of its store.
type allowance struct {
	perKind, total Limit
	all            *usage

	// holder is charged with stored and arriving objects; nil if there is no account.
	holder *limits.Holder

	// listed is the maximum number of objects in a list that are not kept.
	listed int64

	// objects and bytes are what the kind's store holds, and are included in all. arriving is the approximate size in
	// bytes of the list in progress.
	objects, bytes, arriving int64
}

// reserve adds to what is held, and returns an error if that exceeds a limit. The change is made in either case.
func (b *allowance) reserve(objects, bytes int64) error {
	b.objects += objects
	b.bytes += bytes
	allObjects, allBytes := b.all.objects.Add(objects), b.all.bytes.Add(bytes)
	err := b.charge()
	if b.perKind.exceededBy(b.objects, b.bytes) || b.total.exceededBy(allObjects, allBytes) {
		return errTooLarge
	}
	return err
}

// charge reports what is held to the process's budget.
func (b *allowance) charge() error { return b.holder.Hold(b.bytes + b.arriving) }

// arrive updates the size of the list in progress.
func (b *allowance) arrive(m *meter) error {
	const perPassed = 100
	b.arriving = m.bytes + m.passed*perPassed
	return b.charge()
}

// fits reports whether the given amounts could replace what is held.
func (b *allowance) fits(objects, bytes int64) bool {
	return !b.perKind.exceededBy(objects, bytes) &&
		!b.total.exceededBy(b.all.objects.Load()-b.objects+objects, b.all.bytes.Load()-b.bytes+bytes)
}

// admits returns an error if the list in progress cannot be kept.
func (b *allowance) admits(m *meter) error {
	switch {
	case b.listed >= 0 && m.passed > b.listed:
		return errTooMany
	case !b.fits(int64(len(m.sizes)+m.pages), m.bytes):
		return errTooLarge
	}
	return b.arrive(m)
}

func (b *allowance) release() { _ = b.reserve(-b.objects, -b.bytes) }

// meter measures a list in progress, in pages or as a stream. A page counts as an object, so that an endless series of
// empty pages is limited, too.
type meter struct {
	sizes map[types.NamespacedName]int64
	pages int
	bytes int64

	// passed is how many objects were not kept.
	passed int64
}

func newMeter() meter { return meter{sizes: map[types.NamespacedName]int64{}} }

func (m *meter) add(key types.NamespacedName, size int64) {
	m.bytes += size - m.sizes[key]
	m.sizes[key] = size
}
