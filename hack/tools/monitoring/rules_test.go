// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v2"

	"github.com/prometheus/prometheus/promql/parser"
)

// rule is a recording rule or an alert.
type rule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

type group struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type groups struct {
	Groups []group `yaml:"groups"`
}

func ruleGroups(t *testing.T) groups {
	t.Helper()
	var resource struct {
		Spec groups `yaml:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "config", "prometheus", "alerts.yaml")), &resource); err != nil {
		t.Fatal(err)
	}
	if len(resource.Spec.Groups) == 0 {
		t.Fatal("found no rules")
	}
	return resource.Spec
}

// withRecords is the reference with the series of the recording rules.
func withRecords(t *testing.T) catalogue {
	t.Helper()
	known := reference(t)
	for _, g := range ruleGroups(t).Groups {
		for _, r := range g.Rules {
			if r.Record != "" {
				if expr := known.check(t, r.Record, r.Expr); expr != nil {
					known.record(t, r.Record, expr)
				}
			}
		}
	}
	return known
}

// TestAlerts checks that each alert queries existing series, waits, does not distinguish replicas, and has a runbook.
func TestAlerts(t *testing.T) {
	known := withRecords(t)
	runbooks := read(t, "docs", "runbooks.md")
	tests := read(t, "config", "prometheus", "tests", "alerts.yaml")
	for _, g := range ruleGroups(t).Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			expr := known.check(t, r.Alert, r.Expr)
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s lacks a severity, a summary or a description", r.Alert)
			}
			if d, err := model.ParseDuration(r.For); err != nil || d == 0 {
				t.Errorf("%s fires at once, so on every roll-out", r.Alert)
			}
			if expr != nil && tellsReplicasApart(expr) {
				t.Errorf("%s tells replicas apart, so that a restart begins the wait again: %s", r.Alert, r.Expr)
			}
			if want := "https://github.com/masthead-dev/masthead/blob/main/docs/runbooks.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
				t.Errorf("%s: want the runbook %s, got %q", r.Alert, want, r.Annotations["runbook_url"])
			}
			if !strings.Contains(runbooks, "\n## "+r.Alert+"\n") {
				t.Errorf("docs/runbooks.md does not say what to do about %s", r.Alert)
			}
			for _, outcome := range []string{`exp_labels:`, `exp_alerts: \[\]`} {
				if !regexp.MustCompile(`alertname: ` + r.Alert + `\n\s+(exp_alerts:\n\s+- )?` + outcome).MatchString(tests) {
					t.Errorf("config/prometheus/tests has no case of %s with %s", r.Alert, outcome)
				}
			}
		}
	}
}

// tellsReplicasApart is whether a series of the target is in the result without an aggregation by labels. The series of
// a recording rule have been aggregated before.
func tellsReplicasApart(expr parser.Expr) bool {
	apart := false
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		selector, ok := n.(*parser.VectorSelector)
		if !ok || strings.Contains(selector.Name, ":") {
			return nil
		}
		for _, above := range path {
			switch above := above.(type) {
			case *parser.AggregateExpr:
				if !above.Without {
					return nil
				}
			case *parser.Call:
				if above.Func.Name == "absent" {
					return nil
				}
			}
		}
		apart = true
		return nil
	})
	return apart
}

// fleets repeats a series whose cluster is a range, such as w1..w900, for each cluster of it.
func fleets(tests string) string {
	series := regexp.MustCompile(`(?m)^(.*cluster_name="w)(\d+)\.\.w(\d+)(".*\n)`)
	return series.ReplaceAllStringFunc(tests, func(line string) string {
		m := series.FindStringSubmatch(line)
		first, _ := strconv.Atoi(m[2])
		last, _ := strconv.Atoi(m[3])
		var all strings.Builder
		for i := first; i <= last; i++ {
			fmt.Fprintf(&all, "%s%d%s", m[1], i, m[4])
		}
		return all.String()
	})
}

// TestWithPromtool lets promtool check the rules and run their tests.
func TestWithPromtool(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), filepath.Join(repository, "hack", "prometheus.sh"), "promtool").Output()
	if err != nil {
		message := err.Error()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			message = string(exit.Stderr)
		}
		t.Fatalf("there is no promtool to run the tests of the alerts with: %s", message)
	}
	promtool := strings.TrimSpace(string(out))
	folder := t.TempDir()
	write := func(name string, of groups) string {
		data, err := yaml.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	all := ruleGroups(t)
	run("check", "rules", write("whole.yaml", all))
	// The texts of annotations are for people, and would be in every test.
	for _, g := range all.Groups {
		for i := range g.Rules {
			g.Rules[i].Annotations = nil
		}
	}
	write("rules.yaml", all)
	cases := filepath.Join(folder, "alerts.yaml")
	if err := os.WriteFile(cases, []byte(fleets(read(t, "config", "prometheus", "tests", "alerts.yaml"))), 0o600); err != nil {
		t.Fatal(err)
	}
	run("test", "rules", cases)
}
