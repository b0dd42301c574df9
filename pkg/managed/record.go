// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Record is what an annotation of an object says that Masthead wrote: what it was made of, and the generation that it
// had then. An object that still has this generation has not been changed since, which need not be found out by reading
// it, not even after a restart. What the API server changes itself, by defaults or by dropping what it does not know,
// is in the generation already. Its cluster's owner can forge it, and deceives nobody but the users of that cluster.
//
// The definitions of claim kinds have none. They were written without one, and a record in each would have every one
// written again.
type Record struct {
	Hash       string
	Generation int64
}

// String is the record as the annotation holds it.
func (r Record) String() string { return r.Hash + "/" + strconv.FormatInt(r.Generation, 10) }

// ParseRecord reads an annotation.
func ParseRecord(annotation string) (Record, bool) {
	hash, number, found := strings.Cut(annotation, "/")
	generation, err := strconv.ParseInt(number, 10, 64)
	if !found || hash == "" || err != nil || generation < 0 {
		return Record{}, false
	}
	return Record{Hash: hash, Generation: generation}, true
}

// NextGeneration is the generation that an object has after it is written over what there is, or anew if that is nil.
// If its content is right, as recorded, only its metadata change, which the generation does not count.
func NextGeneration(have *unstructured.Unstructured, right bool) int64 {
	switch {
	case have == nil:
		return 1
	case right:
		return have.GetGeneration()
	}
	return have.GetGeneration() + 1
}

// HashOf is a hash of JSON content. Go writes the keys of maps in order.
func HashOf(content any) string {
	data, err := json.Marshal(content)
	if err != nil {
		// Content comes from JSON. What cannot go back is different from everything else.
		return fmt.Sprintf("unknown: %v", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}
