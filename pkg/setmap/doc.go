// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setmap holds sets of values by a key: an index. Whoever asks for one key pays for what is under that key,
// however many keys there are, and a key without values takes no memory. It is not safe for concurrent use.
package setmap
