// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is the part of a dashboard that is read.
type dashboard struct {
	UID, Title string
	Editable   bool
	Panels     []struct {
		Title, Type, Description string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct {
			Name  string
			Query any
		}
	}
}

// TestDashboards parses every query of every panel, and compares its metrics and labels with the reference.
func TestDashboards(t *testing.T) {
	known := withRecords(t)
	pages, err := filepath.Glob(filepath.Join(repository, "config", "grafana", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) != 7 {
		t.Errorf("want seven dashboards, got %d", len(pages))
	}
	configMaps := read(t, "config", "grafana", "kustomization.yaml")
	uids := map[string]string{}
	for _, page := range pages {
		name := filepath.Base(page)
		if !strings.Contains(configMaps, "["+name+"]") {
			t.Errorf("%s is in no ConfigMap", name)
		}
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, "config", "grafana", name)), &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d.UID == "" || len(d.UID) > 40 || d.Title == "" || uids[d.UID] != "" {
			t.Errorf("%s: the UID %q or the title %q is no good, or is that of %q", name, d.UID, d.Title, uids[d.UID])
		}
		uids[d.UID] = name
		if d.Editable {
			t.Errorf("%s: what is changed in Grafana is lost when the ConfigMap is read again", name)
		}
		checkVariables(t, known, name, d)
		checkPanels(t, known, name, d)
	}
}

// variable is a variable in a query; those of Grafana itself have their own names.
var variable = regexp.MustCompile(`\$\{?(\w+)\}?`) //nolint:gochecknoglobals // A constant.

func checkVariables(t *testing.T, known catalogue, page string, d dashboard) {
	t.Helper()
	values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, v := range d.Templating.List {
		query, _ := v.Query.(map[string]any)
		text, _ := query["query"].(string)
		if text == "" {
			continue // The data source.
		}
		m := values.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s: the variable %s does not ask for the values of a label: %q", page, v.Name, text)
			continue
		}
		known.check(t, page+", variable "+v.Name, "count by ("+m[2]+") ("+variable.ReplaceAllString(m[1], "x")+")")
	}
}

func checkPanels(t *testing.T, known catalogue, page string, d dashboard) {
	t.Helper()
	defined := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		defined = append(defined, v.Name)
	}
	legend := regexp.MustCompile(`{{(\w+)}}`)
	few := regexp.MustCompile(`^(top|bottom)k\(10, `)
	queries := 0
	for i, p := range d.Panels {
		where := page + ", " + p.Title
		if p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s: a panel of the type %s lacks a title or a query", where, p.Type)
		}
		if p.Type != "row" && p.Description == "" {
			t.Errorf("%s: it has no description", where)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: it leaves the page", where)
		}
		for _, other := range d.Panels[:i] {
			if a, b := p.GridPos, other.GridPos; a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%s: it covers %s", where, other.Title)
			}
		}
		for _, q := range p.Targets {
			queries++
			for _, v := range variable.FindAllStringSubmatch(q.Expr, -1) {
				if !slices.Contains(defined, v[1]) {
					t.Errorf("%s: there is no variable %q", where, v[1])
				}
			}
			text := strings.ReplaceAll(q.Expr, "$__rate_interval", "5m")
			if known.check(t, where, variable.ReplaceAllString(text, "x")) == nil {
				continue
			}
			if strings.Contains(q.LegendFormat, "{{cluster_name}}") && !few.MatchString(q.Expr) {
				t.Errorf("%s: with a thousand clusters it has a line for each: %s", where, q.Expr)
			}
			for _, l := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if !strings.Contains(q.Expr, l[1]) && !known.has(q.Expr, l[1]) {
					t.Errorf("%s: the legend %q names a label that %q does not have", where, q.LegendFormat, q.Expr)
				}
			}
		}
	}
	if queries == 0 {
		t.Errorf("%s has no query", page)
	}
}

// has is whether some series of a query has a label.
func (c catalogue) has(query, label string) bool {
	for name, labels := range c {
		if strings.Contains(query, name) && slices.Contains(labels, label) {
			return true
		}
	}
	return false
}
