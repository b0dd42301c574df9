// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objecttest has test helpers for writing down objects.
package objecttest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Parse parses an object from JSON with apostrophes for quotation marks. It fails the test if the object is invalid.
func Parse(t *testing.T, s string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(strings.ReplaceAll(s, "'", `"`))); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return u
}
