// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAlertIsAboutEveryController checks that the alert about failing controllers names each controller. The other
// tests of the alerts are in hack/tools/monitoring, which has the parser of Prometheus.
func TestAlertIsAboutEveryController(t *testing.T) {
	code := files(t, ".go")
	maps.DeleteFunc(code, func(path, _ string) bool {
		return strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, "pkg/")
	})
	controllers := slices.Collect(maps.Keys(matches(code, `(?:\w*[cC]ontroller(?:Name)?|rollupName)\s*=\s*"([a-z-]+)"`)))
	for name := range matches(code, `NewTypedUnmanaged\("([a-z-]+)"`) {
		controllers = append(controllers, name)
	}
	slices.Sort(controllers)
	rules := files(t, "alerts.yaml")["config/prometheus/alerts.yaml"]
	failing := regexp.MustCompile(`reconcile_errors_total{controller=~"([^"]*)"}`).FindStringSubmatch(rules)
	if failing == nil {
		t.Fatal("found no alert about controllers that fail")
	}
	if got := strings.Split(failing[1], "|"); !slices.Equal(got, controllers) {
		t.Errorf("the alert about failing controllers is about %v, and there are %v", got, controllers)
	}
}
