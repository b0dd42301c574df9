// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/objecttest"
)

// Parse parses an object from JSON, in which single quotes stand for double ones.
func Parse(t *testing.T, s string) *unstructured.Unstructured {
	t.Helper()
	if s = strings.ReplaceAll(s, "'", `"`); s == "" {
		return nil
	}
	if !strings.Contains(s, `"kind"`) {
		s = `{"apiVersion":"db.acmeco.org/v1","kind":"MySQLInstance",` + strings.TrimPrefix(strings.TrimPrefix(s, "{"), " ")
		s = strings.Replace(s, ",}", "}", 1)
	}
	return objecttest.Parse(t, s)
}
