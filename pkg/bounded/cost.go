// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"cmp"
	"math"
)

// Weights of the cost, in bytes. They are upper bounds over everything that answers of workload clusters are decoded
// into.
const (
	// costByte is for the text itself: whoever reads it whole holds it in a buffer that grows, and so twice for a moment.
	costByte = 2

	// costObject is for an object: at least a map and its first group of eight slots, or a struct as large as a
	// PartialObjectMetadata in a slice that has grown beyond its length. A CustomResourceDefinition is the largest such
	// struct.
	costObject = 768

	// costArray is for an array: a slice, and the interface that it is in.
	costArray = 96

	// costKey is for a key beside its bytes: a string, and its part of a map that has grown.
	costKey = 112

	// costScalar is for a string beside its bytes, a number, a boolean or null, with the interface that it is in and its
	// part of a slice that has grown.
	costScalar = 80

	// costNonASCII is for a byte of a string that is not ASCII, which may become a replacement character of three bytes.
	costNonASCII = 3
)

// Limits are those of a Scanner. A number that is not positive is no limit, but that of Depth, which is then 256, the
// most that can be asked for.
type Limits struct {
	// Bytes of one text, with the white space before it.
	Bytes int64
	// Cost is about how many bytes one text may take in memory while it is read and decoded.
	Cost int64
	// Values of one text, of any kind: objects, arrays, strings, numbers, true, false and null.
	Values int64
	// Depth is how deep objects and arrays may be nested.
	Depth int
	// Key and String are how many bytes one key, and one other string or number, may have as they are written.
	Key    int
	String int
}

// Defaults that do for every kind of answer. Objects are two MiB at most in etcd; the schemas of CRDs are the deepest
// objects that there are, at about 60 levels.
const (
	DefaultCost   = 64 << 20
	DefaultValues = 1 << 20
	DefaultDepth  = 128
	DefaultKey    = 16 << 10
	DefaultString = 4 << 20

	// maxDepth is what a Scanner has room for.
	maxDepth = 256
)

// withoutZeros has the largest number for what has no limit.
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

// WithBytes are the default limits for texts of so many bytes.
func WithBytes(bytes int64) Limits {
	return Limits{
		Bytes: bytes, Cost: DefaultCost, Values: DefaultValues, Depth: DefaultDepth, Key: DefaultKey, String: DefaultString,
	}
}

// Or has the other limits for what is not given.
func (l Limits) Or(other Limits) Limits {
	return Limits{
		Bytes: cmp.Or(l.Bytes, other.Bytes), Cost: cmp.Or(l.Cost, other.Cost), Values: cmp.Or(l.Values, other.Values),
		Depth: cmp.Or(l.Depth, other.Depth), Key: cmp.Or(l.Key, other.Key), String: cmp.Or(l.String, other.String),
	}
}
