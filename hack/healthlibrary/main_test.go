// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/health"
)

func TestPageIsUpToDate(t *testing.T) {
	library, err := health.NewLibrary()
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join("..", "..", "docs", "health-library.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != page(library) {
		t.Error("docs/health-library.md is not what the library says; run make generate")
	}
}

func TestStates(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		rule   fleetv1alpha1.HealthRuleSpec
		want   string
	}{
		"Usual": {"Progressing and Degraded need no word.", fleetv1alpha1.HealthRuleSpec{Healthy: "object.ok", Degraded: "object.bad"}, ""},
		"Suspended": {
			"Another state does.", fleetv1alpha1.HealthRuleSpec{Healthy: "object.ok", Degraded: "object.bad", Suspended: "object.off"},
			"Suspended",
		},
		"Unknown": {
			"Without an expression it is Unknown, and not Progressing.",
			fleetv1alpha1.HealthRuleSpec{Healthy: "object.ok", Degraded: "object.bad", Otherwise: fleetv1alpha1.OtherwiseUnknown},
			"Unknown, not Progressing",
		},
		"Pending": {"A rule need not tell Degraded.", fleetv1alpha1.HealthRuleSpec{Healthy: "object.ok"}, "not Degraded"},
		"Always":  {"A kind that nothing reports on is Healthy.", fleetv1alpha1.HealthRuleSpec{Healthy: "true"}, "Healthy only"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := states(tc.rule); got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
