// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"cmp"
	"math"
)

// Weights of the cost, in bytes. They are upper bounds for every type that responses of workload clusters are decoded
// into.
const (
	// costByte is for the text itself: it is read into a growing buffer, and so held twice for a moment.
	costByte = 2

	// costObject is for an object: at least a map and its first group of eight slots, or a struct as large as a
	// PartialObjectMetadata in a slice that has grown beyond its length. A CustomResourceDefinition is the largest such
	// struct.
	costObject = 768

	// costArray is for an array: a slice, and its interface.
	costArray = 96

	// costKey is for a key in addition to its bytes: a string, and its part of a map that has grown.
	costKey = 112

	// costScalar is for a string in addition to its bytes, a number, a boolean or null, with its interface and its part of
	// a slice that has grown.
	costScalar = 80

	// costNonASCII is for a non-ASCII byte of a string, which may become a replacement character of three bytes.
	costNonASCII = 3
)

// Limits are the limits of a Scanner. A number that is not positive means no limit, except for Depth, where it means
// 256, the maximum.
type Limits struct {
	// Bytes of one text, with the white space before it.
	Bytes int64
	// Cost limits the estimated memory in bytes for reading and decoding one text.
	Cost int64
	// Values of one text, of any kind: objects, arrays, strings, numbers, true, false and null.
	Values int64
	// Depth limits the nesting of objects and arrays.
	Depth int
	// Key and String limit the encoded length in bytes of one key, and of one other string or number.
	Key    int
	String int
}

// Defaults that suffice for every kind of response. Objects are at most two MiB in etcd; the schemas of CRDs are the
// deepest objects, at about 60 levels.
const (
	DefaultCost   = 64 << 20
	DefaultValues = 1 << 20
	DefaultDepth  = 128
	DefaultKey    = 16 << 10
	DefaultString = 4 << 20

	// maxDepth is the capacity of a Scanner.
	maxDepth = 256
)

// withoutZeros replaces missing limits by the largest number.
func (l Limits) withoutZeros() Limits {
	for _, v := range []*int64{&l.Bytes, &l.Cost, &l.Values} {
		if *v <= 0 {
			*v = math.MaxInt64
		}
	}
	for _, v := range []*int{&l.Key, &l.String} {
		if *v <= 0 {
			*v = math.MaxInt
		}
	}
	if l.Depth <= 0 || l.Depth > maxDepth {
		l.Depth = maxDepth
	}
	return l
}

// WithBytes returns the default limits for texts of the given bytes.
func WithBytes(bytes int64) Limits {
	return Limits{
		Bytes: bytes, Cost: DefaultCost, Values: DefaultValues, Depth: DefaultDepth, Key: DefaultKey, String: DefaultString,
	}
}

// Or takes missing limits from other.
func (l Limits) Or(other Limits) Limits {
	return Limits{
		Bytes: cmp.Or(l.Bytes, other.Bytes), Cost: cmp.Or(l.Cost, other.Cost), Values: cmp.Or(l.Values, other.Values),
		Depth: cmp.Or(l.Depth, other.Depth), Key: cmp.Or(l.Key, other.Key), String: cmp.Or(l.String, other.String),
	}
}

// Size estimates how many bytes of memory a decoded value takes while it is stored: at most the cost of its text.
func Size(v any) int64 {
	const (
		header   = 24  // Of a string or slice, rounded up, or another value in an interface.
		slot     = 16  // An interface.
		emptyMap = 48  // And no slots.
		group    = 264 // Eight slots of a small map.
		entry    = 48  // One of a large map, with its part of the free slots.
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
			size += int64(len(k)) + Size(e)
		}
	case []any:
		size += header
		for _, e := range v {
			size += Size(e)
		}
	default:
		size += header
	}
	return size
}
