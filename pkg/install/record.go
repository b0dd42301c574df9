// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Record is an annotation about Masthead's last write of an object: a hash of its source, and the resulting generation.
// An object that still has this generation is unchanged, so that its content need not be read, even after a restart.
// Changes by the API server itself (defaults, dropped unknown fields) are included in the generation. The owner of the
// cluster can forge it, which affects only the users of that cluster.
//
// Definitions of claim kinds have none. They were written without one, and adding it would rewrite every definition.
type Record struct {
	Hash       string
	Generation int64
}

// String returns the value of the annotation.
func (r Record) String() string { return r.Hash + "/" + strconv.FormatInt(r.Generation, 10) }

// ParseRecord parses the value of the annotation.
func ParseRecord(annotation string) (Record, bool) {
	hash, number, found := strings.Cut(annotation, "/")
	generation, err := strconv.ParseInt(number, 10, 64)
	if !found || hash == "" || err != nil || generation < 0 {
		return Record{}, false
	}
	return Record{Hash: hash, Generation: generation}, true
}

// NextGeneration returns the generation of an object after it is written over have, or created if that is nil. If the
// content is right already, only metadata change, which the generation does not count.
func NextGeneration(have *unstructured.Unstructured, right bool) int64 {
	switch {
	case have == nil:
		return 1
	case right:
		return have.GetGeneration()
	}
	return have.GetGeneration() + 1
}
