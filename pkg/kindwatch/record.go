// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Record is kept of an object instead of the object. It is not changed after Reduce has returned it.
type Record interface {
	// Equal is whether another record of the same object says the same. A change to an equal record is not reported.
	Equal(other Record) bool

	// IndexKeys are the keys under which Lookup finds the record. They may repeat themselves, and depend on nothing but
	// what Equal compares.
	IndexKeys() []string

	// Size is about how many bytes it takes in memory.
	Size() int64
}

// An Entry is a Record and the object of which it is kept.
type Entry struct {
	Key types.NamespacedName
	UID types.UID

	// ResourceVersion is that of the last state of the object that was seen, also when it led to an equal Record.
	ResourceVersion string

	Record Record
}

// A ReduceFunc makes a Record of an object, or returns false for one that is not kept. It must not keep or change the
// object, must not panic, whatever is in it, and is called from many goroutines at once.
type ReduceFunc func(kind Kind, obj *unstructured.Unstructured) (Record, bool)

// An item is what is held of an object: the object, a record of it, or the mere knowledge that nothing is kept of it.
// Items do not change.
type item struct {
	Entry
	object *unstructured.Unstructured

	// indexKeys are those of the record, sorted and once each.
	indexKeys []string
	size      int64
}

// kept is whether there is anything to be kept.
func (i *item) kept() bool { return i != nil && (i.object != nil || i.Record != nil) }

// GetObjectKind implements runtime.Object, so that a list of items can stand for a list of objects.
func (*item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (i *item) DeepCopyObject() runtime.Object { return i }

// sameAs is whether there is nothing to report when an item of the same object takes the place of another one. An
// object whose resource version did not change did not change. A record can change without: what Reduce makes of an
// object is its own affair.
func (i *item) sameAs(other *item) bool {
	if i.Record != nil {
		return i.Record.Equal(other.Record)
	}
	return i.ResourceVersion == other.ResourceVersion
}

// holder makes items of the objects of a kind.
type holder struct {
	kind Kind

	// selects tells of an object's labels whether the kind's LabelSelector selects it.
	selects func(labels.Set) bool

	// keepManager is the field manager of which objects keep what it manages.
	keepManager string

	// reduce is nil if objects are kept.
	reduce ReduceFunc
}

// inNamespace is whether the item is an object of a namespace. Those of records are found by their index keys.
func (i *item) inNamespace() bool { return i.object != nil && i.Key.Namespace != "" }

// newHolder returns a holder that drops what the selector of the kind does not select. Of a selector that cannot be
// understood it drops everything: an API server refuses that one, too.
func newHolder(kind Kind) holder {
	selector, err := labels.Parse(kind.LabelSelector)
	return holder{kind: kind, selects: func(l labels.Set) bool { return err == nil && (selector.Empty() || selector.Matches(l)) }}
}

// hold makes of an object that a server sent what is held of it. It returns false for what cannot be an object of the
// kind, what the selector does not select, and what has been passed already. A server that honours selectors sends none
// of these.
func (h holder) hold(obj any) (*item, bool) {
	if i, ok := obj.(*item); ok {
		return i, i.kept()
	}
	if h.kind.LabelSelector != "" {
		// What is kept of an object may be without its labels.
		if o, ok := obj.(metav1.Object); !ok || !h.selects(o.GetLabels()) {
			return nil, false
		}
	}
	u, ok := h.kind.admitted(obj, h.keepManager)
	if !ok {
		return nil, false
	}
	i := &item{Entry: Entry{Key: keyOf(u), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}}
	if h.reduce == nil {
		i.object, i.size = u, sizeOf(u.Object)
		return i, true
	}
	if record, ok := h.reduce(h.kind, u); ok && record != nil {
		i.Record = record
		i.indexKeys = slices.Sorted(slices.Values(record.IndexKeys()))
		i.indexKeys = slices.Clip(slices.Compact(i.indexKeys))
		i.size = i.sizeOfEntry()
	}
	return i, true
}

// sizeOfPlace is about what an item takes in memory of which nothing is kept: itself, and its places in the maps.
func (i *item) sizeOfPlace() int64 {
	const own = 256
	return own + int64(len(i.Key.Namespace)+len(i.Key.Name)+len(i.UID)+len(i.ResourceVersion))
}

// sizeOfEntry is about what an item with a record takes in memory: itself, its places in the maps, and the record.
func (i *item) sizeOfEntry() int64 {
	const perIndexKey = 112
	size := i.sizeOfPlace() + max(0, i.Record.Size())
	for _, k := range i.indexKeys {
		size += perIndexKey + int64(len(k))
	}
	return size
}
