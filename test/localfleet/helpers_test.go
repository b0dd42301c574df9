// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"testing"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// eventually fails the test if the condition does not become true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := testenv.Poll(t.Context(), testenv.Patience, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("not true in time: %s", what)
	}
}
