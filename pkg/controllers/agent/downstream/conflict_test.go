// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestWithConflict(t *testing.T) {
	claim := agenttest.Parse(t, `{'metadata': {'name': 'db', 'annotations': {'a': 'b'}}}`)
	if WithConflict(claim, "") != nil {
		t.Error("want nothing to do for a claim without a conflict")
	}
	noted := WithConflict(claim, strings.Repeat("x", 1000)+"\x1b")
	got := noted.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]
	if len(got) > multicluster.MaxForeignText+3 || noted.GetAnnotations()["a"] != "b" {
		t.Errorf("want a bounded text beside what is there, got %d characters and %v", len(got), noted.GetAnnotations())
	}
	if WithConflict(noted, strings.Repeat("x", 1000)+"\x1b") != nil {
		t.Error("want nothing to do for a conflict that is noted")
	}
	if diff := cmp.Diff(claim.GetAnnotations(), WithConflict(noted, "").GetAnnotations()); diff != "" {
		t.Errorf("want the annotation to go with the conflict (-want +got):\n%s", diff)
	}
}
