// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/masthead-dev/masthead/test/localfleet"
)

func TestPageQueries(t *testing.T) {
	const datasource = `{"name": "datasource", "type": "datasource", "query": "prometheus"}`
	variable := func(name, query, value string) string {
		return `{"name": "` + name + `", "type": "query", "allValue": ".*", "query": {"query": "` + query + `"}, "current": {"value": ` + value + `}}`
	}
	dashboard := func(expr string, variables ...string) string {
		return `{"templating": {"list": [` + strings.Join(variables, ",") + `]},
			"panels": [{"title": "A section"}, {"title": "Up", "targets": [{"expr": "` + expr + `"}]}]}`
	}
	cases := map[string]struct {
		reason string
		page   string
		step   time.Duration
		want   []Query
		err    string
	}{
		"All": {
			reason: "A variable whose value is all of them is filled in with what the dashboard says that this is, and uses the ones before it.",
			page: dashboard(`up{job=~\"$job\", pod=~\"${pod}\"}`, datasource, variable("job", "label_values(up, job)", `"$__all"`),
				variable("pod", `label_values(up{job=~\"$job\"}, pod)`, `"$__all"`)),
			want: []Query{
				{"page/$job", `count by (job) (up)`},
				{"page/$pod", `count by (pod) (up{job=~".*"})`},
				{"page/Up", `up{job=~".*", pod=~".*"}`},
			},
		},
		"Chosen": {
			reason: "A value that the dashboard begins with is taken as it is.",
			page:   dashboard(`up{job=\"$job\"}`, variable("job", "label_values(up, job)", `"a"`)),
			want:   []Query{{"page/$job", `count by (job) (up)`}, {"page/Up", `up{job="a"}`}},
		},
		"ShortSteps": {
			reason: "A rate needs four scrapes.",
			page:   dashboard(`rate(a_total[$__rate_interval])`),
			step:   time.Second,
			want:   []Query{{"page/Up", `rate(a_total[8s])`}},
		},
		"LongSteps": {
			reason: "A rate leaves nothing out between two points.",
			page:   dashboard(`rate(a_total[$__rate_interval])`),
			step:   time.Minute,
			want:   []Query{{"page/Up", `rate(a_total[1m2s])`}},
		},
		"Unknown": {
			reason: "Grafana would send what is no variable as it is.",
			page:   dashboard(`up{job=\"$jbo\"}`, datasource),
			err:    `there is no variable $jbo: "up{job=\"$jbo\"}"`,
		},
		"NotOfALabel": {
			reason: "A variable that cannot be queried is reported.",
			page:   dashboard(`up`, variable("job", "metrics(up)", `"$__all"`)),
			err:    `the variable "job" does not ask for the values of a label: "metrics(up)"`,
		},
		"NoValue": {
			reason: "A page without a value shows nothing when it is opened.",
			page:   dashboard(`up`, variable("job", "label_values(up, job)", `[]`)),
			err:    `the variable "job" has no value to begin with`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := pageQueries("page", []byte(c.page), c.step)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if message != c.err {
				t.Errorf("%s\nwant the error %q, got %q", c.reason, c.err, message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n%s", c.reason, diff)
			}
		})
	}
}

// TestDashboardsAndRulesAreRead checks that the queries and rules that the end-to-end suite checks can be read.
func TestDashboardsAndRulesAreRead(t *testing.T) {
	root, err := localfleet.Repository()
	if err != nil {
		t.Fatal(err)
	}
	queries, err := Queries(filepath.Join(root, "config", "grafana"), ScrapeInterval)
	if err != nil {
		t.Fatal(err)
	}
	if len(queries) < 80 {
		t.Errorf("found only %d queries", len(queries))
	}
	folder := t.TempDir()
	if err := configure(Options{Folder: folder, Rules: filepath.Join(root, "config", "prometheus", "alerts.yaml")}); err != nil {
		t.Error(err)
	}
}
