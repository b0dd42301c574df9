// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// A Record is stored instead of an object. It is immutable after Reduce has returned it.
type Record interface {
	// Equal reports whether another record of the same object has the same content. A change to an equal record is not
	// reported.
	Equal(other Record) bool

	// IndexKeys returns the keys under which Lookup finds the record. They may contain duplicates, and depend only on what
	// Equal compares.
	IndexKeys() []string

	// Size estimates how many bytes it takes in memory.
	Size() int64
}

// An Entry is a Record and the identity of its object.
type Entry struct {
	Key types.NamespacedName
	UID types.UID

	// ResourceVersion is that of the last seen state of the object, even if the Record did not change.
	ResourceVersion string

	Record Record
}

// smallObject is up to how many bytes a decoded object is charged for its JSON only. Few are decoded at a time; a
// larger one is charged for what it takes then, which can be hundreds of times as much as its JSON.
const smallObject = 256 << 10

// A ReduceFunc converts an object to a Record, or returns false for one that is not kept. It must not keep or change
// the object, must not panic on any content, and is called concurrently.
type ReduceFunc func(kind Kind, obj *unstructured.Unstructured) (Record, bool)

// An Item is what is stored for an object: the object, its record, or only that nothing is kept of it. Items are
// immutable.
type Item struct {
	Entry

	// metadata and body are the object in JSON, which takes a fifth of the memory of a decoded one, and no work of the
	// garbage collector. Most readers need the metadata, and the owner of an object decides how large the body is.
	metadata, body []byte

	// indexKeys are those of the record, sorted and without duplicates.
	indexKeys []string
	size      int64
}

// kept reports whether the item has an object or a record.
func (i *Item) kept() bool { return i != nil && (i.metadata != nil || i.Record != nil) }

// Object decodes the object. It is the caller's, and nil if a record is stored.
func (i *Item) Object() *unstructured.Unstructured {
	u := i.Metadata()
	if u != nil {
		decodeJSON(i.body, &u.Object)
	}
	return u
}

// Metadata decodes the object without anything but its metadata. It is the caller's, and nil if a record is stored.
func (i *Item) Metadata() *unstructured.Unstructured {
	if i.metadata == nil {
		return nil
	}
	var metadata map[string]any
	decodeJSON(i.metadata, &metadata)
	return &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
}

// decodeJSON cannot fail for what was encoded.
func decodeJSON(text []byte, into *map[string]any) {
	if err := utiljson.Unmarshal(text, into); err != nil {
		panic(fmt.Sprintf("cannot decode what was encoded: %v", err))
	}
}

// keepObject stores an object.
func (i *Item) keepObject(u *unstructured.Unstructured) (err error) {
	body := maps.Clone(u.Object)
	delete(body, "metadata")
	if i.metadata, err = encodeJSON(u.Object["metadata"]); err != nil {
		return err
	}
	if i.body, err = encodeJSON(body); err != nil {
		return err
	}
	i.size = i.sizeOfPlace() + int64(len(i.metadata)+len(i.body))
	if decoded := limits.Size(u.Object); decoded > smallObject {
		i.size = max(i.size, decoded)
	}
	return nil
}

func encodeJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode an object: %w", err)
	}
	return bytes.Clone(text.Bytes()), nil
}

// sameAs reports whether replacing another item of the same object by this one is no change. An object changes only
// with its resource version. A record can change without it, since Reduce may decide differently.
func (i *Item) sameAs(other *Item) bool {
	if i.Record != nil {
		return i.Record.Equal(other.Record)
	}
	return i.ResourceVersion == other.ResourceVersion
}

// converter converts objects of a kind to items.
type converter struct {
	kind Kind

	// selects reports whether the kind's LabelSelector matches an object's labels.
	selects func(labels.Set) bool

	// keepManager is the field manager whose managedFields entries are kept.
	keepManager string

	// reduce is nil if objects are kept; then keep, if not nil, says what of them.
	reduce ReduceFunc
	keep   func(Kind, *unstructured.Unstructured, int64) *unstructured.Unstructured
}

// inNamespace reports whether the item is a namespaced object. Records are found by their index keys.
func (i *Item) inNamespace() bool { return i.metadata != nil && i.Key.Namespace != "" }

// newConverter returns a converter that drops objects that the kind's selector does not match. With an invalid selector
// it drops everything: an API server rejects that one, too.
func newConverter(kind Kind) converter {
	selector, err := labels.Parse(kind.LabelSelector)
	return converter{kind: kind, selects: func(l labels.Set) bool { return err == nil && (selector.Empty() || selector.Matches(l)) }}
}

// convert converts an object from a server to an item. It returns false for what cannot be an object of the kind, and
// for what the selector does not match. A server that honours selectors sends no unmatched objects.
func (h converter) convert(obj runtime.Object) (*Item, bool) {
	if h.kind.LabelSelector != "" {
		// The stored form may lack the labels.
		if o, ok := obj.(metav1.Object); !ok || !h.selects(o.GetLabels()) {
			return nil, false
		}
	}
	u, ok := h.kind.admitted(obj, h.keepManager)
	if !ok {
		return nil, false
	}
	i := &Item{Entry: Entry{Key: objectKey(u), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}}
	if h.reduce == nil {
		err := i.keepObject(u)
		if err == nil && h.keep != nil {
			if kept := h.keep(h.kind, u, i.size); kept != u {
				err = i.keepObject(kept)
			}
		}
		return i, err == nil
	}
	if record, ok := h.reduce(h.kind, u); ok && record != nil {
		i.Record = record
		i.indexKeys = slices.Sorted(slices.Values(record.IndexKeys()))
		i.indexKeys = slices.Clip(slices.Compact(i.indexKeys))
		i.size = i.sizeOfEntry()
	}
	return i, true
}

// sizeOfPlace estimates the memory of an item without object or record: itself, and its map entries.
func (i *Item) sizeOfPlace() int64 {
	const own = 256
	return own + int64(len(i.Key.Namespace)+len(i.Key.Name)+len(i.UID)+len(i.ResourceVersion))
}

// sizeOfEntry estimates the memory of an item with a record: itself, its map entries, and the record.
func (i *Item) sizeOfEntry() int64 {
	const perIndexKey = 112
	size := i.sizeOfPlace() + max(0, i.Record.Size())
	for _, k := range i.indexKeys {
		size += perIndexKey + int64(len(k))
	}
	return size
}
