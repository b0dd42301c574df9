// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setmap implements an index: a set of values per key. The cost of reading a key depends on its values alone,
// and a key without values takes no memory. It is not safe for concurrent use.
package setmap
