// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAlerts sees that the alert rules are about metrics and controllers that exist, that none can fire because of a
// roll-out, and that operations.md names each.
func TestAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(files(t, "alerts.yaml")["config/prometheus/alerts.yaml"]), &file); err != nil {
		t.Fatal(err)
	}
	code := files(t, ".go")
	maps.DeleteFunc(code, func(path, _ string) bool {
		return strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, "pkg/")
	})
	published := matches(code, `(?:Name:\s+|NewDesc\()"(masthead_\w+)"`)
	published["controller_runtime_reconcile_errors_total"] = "controller-runtime"
	controllers := slices.Sorted(maps.Keys(matches(code, `(?:\w*[cC]ontroller(?:Name)?|rollupName)\s*=\s*"([a-z-]+)"`)))
	for name := range matches(code, `NewTypedUnmanaged\("([a-z-]+)"`) {
		controllers = append(controllers, name)
	}
	slices.Sort(controllers)
	operations := files(t, ".md")["docs/operations.md"]
	rules, failing := 0, ""
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			if r.Alert == "" || r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%q lacks an expression, a severity, a summary or a description", r.Alert)
			}
			if r.For == "" {
				t.Errorf("%s fires at once, so on every roll-out", r.Alert)
			}
			if !strings.Contains(r.Expr, " by (") && !strings.HasPrefix(r.Expr, "absent(") {
				t.Errorf("%s tells replicas apart: begin with an aggregation by labels", r.Alert)
			}
			if !strings.Contains(operations, "`"+r.Alert+"`") {
				t.Errorf("docs/operations.md does not say what to do about %s", r.Alert)
			}
			for _, metric := range regexp.MustCompile(`(?:masthead|controller_runtime)_\w+`).FindAllString(r.Expr, -1) {
				if published[metric] == "" && published[strings.TrimSuffix(metric, "_bucket")] == "" {
					t.Errorf("%s asks for the metric %s, which does not exist", r.Alert, metric)
				}
			}
			if m := regexp.MustCompile(`controller=~"([^"]*)"`).FindStringSubmatch(r.Expr); m != nil {
				failing = m[1]
			}
		}
	}
	if rules == 0 {
		t.Error("found no rules")
	}
	if got := strings.Split(failing, "|"); !slices.Equal(got, controllers) {
		t.Errorf("the alert about failing controllers is about %v, and there are %v", got, controllers)
	}
}
