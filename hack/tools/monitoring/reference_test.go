// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// repository is the root of the repository.
const repository = "../../.."

func read(t *testing.T, elements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{repository}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// targetLabels are the labels that a ServiceMonitor adds to each series.
func targetLabels() []string { return []string{"job", "pod", "instance", "namespace"} }

// A catalogue has the labels of each series, by its name.
type catalogue map[string][]string

// reference reads docs/reference/metrics.md.
func reference(t *testing.T) catalogue {
	t.Helper()
	row := regexp.MustCompile("^\\| `(\\w+)` \\| (\\w+) \\| (.*?) \\| ")
	label := regexp.MustCompile("(?:^|<br>)`(\\w+)`")
	known := catalogue{}
	for line := range strings.Lines(read(t, "docs", "reference", "metrics.md")) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		names := targetLabels()
		if strings.HasPrefix(m[3], "*of a cluster*") {
			names = append(names, "cluster_namespace", "cluster_name", "source")
		}
		for _, l := range label.FindAllStringSubmatch(m[3], -1) {
			names = append(names, l[1])
		}
		if m[2] == "histogram" {
			known[m[1]+"_bucket"] = append(slices.Clone(names), "le")
			known[m[1]+"_sum"], known[m[1]+"_count"] = names, names
			continue
		}
		known[m[1]] = names
	}
	if len(known) < 40 {
		t.Fatalf("found only %d series in the reference", len(known))
	}
	return known
}

// check parses a query and reports what is wrong with it.
func (c catalogue) check(t *testing.T, where, query string) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %q does not parse: %v", where, query, err)
		return nil
	}
	used := map[string]bool{} // the labels of all series of the query
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		selector, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, exists := c[selector.Name]
		if !exists {
			t.Errorf("%s: the metric %q of %q is not in the reference", where, selector.Name, query)
			return nil
		}
		for _, l := range has {
			used[l] = true
		}
		for _, m := range selector.LabelMatchers {
			if m.Name != labels.MetricName && !slices.Contains(has, m.Name) {
				t.Errorf("%s: %s has no label %q: %q", where, selector.Name, m.Name, query)
			}
		}
		return nil
	})
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		var grouping []string
		switch n := n.(type) {
		case *parser.AggregateExpr:
			grouping = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				grouping = append(slices.Clone(n.VectorMatching.MatchingLabels), n.VectorMatching.Include...)
			}
		}
		for _, l := range grouping {
			if !used[l] {
				t.Errorf("%s: no series of %q has the label %q", where, query, l)
			}
		}
		return nil
	})
	return expr
}

// record adds the series of a recording rule. The series has the labels by which the expression groups, except le.
func (c catalogue) record(t *testing.T, name string, expr parser.Expr) {
	t.Helper()
	for {
		call, ok := expr.(*parser.Call)
		if !ok {
			break
		}
		expr = call.Args[len(call.Args)-1]
	}
	aggregate, ok := expr.(*parser.AggregateExpr)
	if !ok {
		t.Fatalf("%s does not aggregate, so that a restart begins a new series", name)
	}
	c[name] = slices.DeleteFunc(slices.Clone(aggregate.Grouping), func(l string) bool { return l == "le" })
}
