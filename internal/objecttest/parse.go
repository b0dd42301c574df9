// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objecttest has what tests of several packages need to write down objects.
package objecttest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Parse returns an object that is written as JSON with apostrophes for quotation marks. The test ends if it is none.
func Parse(t *testing.T, s string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(strings.ReplaceAll(s, "'", `"`))); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return u
}
