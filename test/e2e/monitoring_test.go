// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
	"github.com/masthead-dev/masthead/test/monitoring"
)

// monitoringTimeout is the timeout for all queries over the whole run, on a machine that does other work too.
const monitoringTimeout = 15 * time.Minute

var (
	// prometheus scrapes the managers while the specs run, from began on.
	prometheus *monitoring.Prometheus
	began      time.Time

	// incomplete names a spec that did not run or did not pass, so that the data that it causes may be missing.
	incomplete string
)

// showNothing are the panels and rules whose queries have no data in a whole run, and why.
var showNothing = map[string]monitoring.Excuse{
	"cluster-detail/Waiting for the limit": {Reason: "how fast requests follow each other depends on the machine", Sometimes: true},
	"requirements/Objects without a claim": {Reason: "specs that leave one claim it again a moment later", Sometimes: true},
	"requirements/Strays":                  {Reason: "no spec restores a backup of the hub into another namespace"},
}

var _ = ReportAfterEach(func(report SpecReport) {
	if report.State.Is(types.SpecStateSkipped) && runsInOther(inFirstFleet, report.Labels()) {
		return // The first fleet shows all that the dashboards query.
	}
	if incomplete == "" && !report.State.Is(types.SpecStatePassed) && unmet(place(), report.Labels()) == "" {
		incomplete = fmt.Sprintf("%q: %s", report.FullText(), report.State)
	}
})

// monitoringOptions fails without the programs, before anything takes time.
func monitoringOptions() monitoring.Options {
	GinkgoHelper()
	options := monitoring.Options{Prometheus: os.Getenv("MASTHEAD_PROMETHEUS_BIN"), Promtool: os.Getenv("MASTHEAD_PROMTOOL_BIN")}
	for name, path := range map[string]string{"MASTHEAD_PROMETHEUS_BIN": options.Prometheus, "MASTHEAD_PROMTOOL_BIN": options.Promtool} {
		Expect(path).To(BeAnExistingFile(), "%s names the program that hack/prometheus.sh prints; make test-e2e sets it", name)
	}
	repository, err := localfleet.Repository()
	Expect(err).NotTo(HaveOccurred())
	options.Rules = filepath.Join(repository, "config", "prometheus", "alerts.yaml")
	return options
}

func startPrometheus(ctx context.Context, options monitoring.Options) {
	GinkgoHelper()
	options.Folder = filepath.Join(fleet.Dir(), "prometheus")
	began = time.Now()
	var err error
	prometheus, err = monitoring.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(prometheus.Kill()).To(Succeed()) })
	remarks = append(remarks, "promtool:\n"+prometheus.Checked)
}

// scrape makes Prometheus scrape the manager, and the replicas beside it. There is a Prometheus on local processes
// only.
func scrape() {
	GinkgoHelper()
	if prometheus == nil {
		return
	}
	var alive []*harness.Manager
	for _, m := range append([]*harness.Manager{asProcess.Manager}, replicas...) {
		if m != nil && m.Alive() {
			alive = append(alive, m)
		}
	}
	Expect(prometheus.Scrape(alive...)).To(Succeed())
}

// eventuallySeen waits until Prometheus has seen a state that could otherwise end before the next scrape of the
// manager. Where there is no Prometheus, nothing queries it afterwards, and this does not wait.
func eventuallySeen(ctx context.Context, expr string) {
	GinkgoHelper()
	if prometheus == nil {
		return
	}
	Eventually(func() (model.Value, error) {
		value, _, _, err := prometheus.Query(ctx, expr, time.Now())
		return value, err
	}).WithContext(ctx).ShouldNot(BeEmpty(), "Prometheus sees %s", expr)
}

// health returns which of the targets and the rules of Prometheus are unhealthy, and why.
func health(ctx context.Context) (unwell []string, err error) {
	targets, err := prometheus.Targets(ctx)
	if err != nil {
		return nil, err
	}
	if len(targets.Active) == 0 {
		unwell = append(unwell, "nothing is scraped")
	}
	for _, t := range targets.Active {
		if t.Health != v1.HealthGood {
			unwell = append(unwell, fmt.Sprintf("the target %s is %s: %s", t.ScrapeURL, t.Health, t.LastError))
		}
	}
	rules, err := prometheus.Rules(ctx, nil)
	if err != nil {
		return nil, err
	}
	if len(rules.Groups) == 0 {
		unwell = append(unwell, "no rules are evaluated")
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			switch r := rule.(type) {
			case v1.RecordingRule:
				if r.Health != v1.RuleHealthGood {
					unwell = append(unwell, fmt.Sprintf("the rule %s is %s: %s", r.Name, r.Health, r.LastError))
				}
			case v1.AlertingRule:
				if r.Health != v1.RuleHealthGood {
					unwell = append(unwell, fmt.Sprintf("the alert %s is %s: %s", r.Name, r.Health, r.LastError))
				}
			}
		}
	}
	return unwell, nil
}

// records returns queries for the results of the recording rules.
func records(ctx context.Context) []monitoring.Query {
	GinkgoHelper()
	rules, err := prometheus.Rules(ctx, nil)
	Expect(err).NotTo(HaveOccurred())
	var queries []monitoring.Query
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if r, ok := rule.(v1.RecordingRule); ok {
				queries = append(queries, monitoring.Query{Panel: "rules/" + r.Name, Expr: r.Name})
			}
		}
	}
	return queries
}

// The order in which the specs run changes, so this cannot be in the last spec.
var _ = AfterSuite(func(ctx context.Context) {
	if prometheus == nil || manager == nil {
		return // There is no Prometheus, or the suite ended before the manager existed.
	}
	log, err := os.ReadFile(prometheus.LogPath)
	Expect(err).NotTo(HaveOccurred())
	GinkgoWriter.Println("Prometheus' log:\n" + string(log))

	By("seeing that Prometheus scraped the manager and evaluated every rule")
	Eventually(health).WithContext(ctx).Should(BeEmpty())
	own, err := harness.ReadMetrics(ctx, prometheus.URL+"/metrics")
	Expect(err).NotTo(HaveOccurred())
	Expect(own.Value("prometheus_rule_evaluation_failures_total")).To(BeZero(), "an evaluation failed at some time: see %s", prometheus.LogPath)
	Expect(own.Value("prometheus_rule_evaluations_total")).NotTo(BeZero())

	By("asking what the dashboards ask, and for what the recording rules make, over the whole run")
	repository, err := localfleet.Repository()
	Expect(err).NotTo(HaveOccurred())
	queries, err := monitoring.Queries(filepath.Join(repository, "config", "grafana"), monitoring.ScrapeInterval)
	Expect(err).NotTo(HaveOccurred())
	answers, err := prometheus.Ask(ctx, append(queries, records(ctx)...),
		v1.Range{Start: began, End: time.Now(), Step: monitoring.ScrapeInterval})
	Expect(err).NotTo(HaveOccurred())
	problems := monitoring.Problems(answers, showNothing)
	remarks = append(remarks, fmt.Sprintf("Prometheus evaluated %d queries of dashboards and recording rules over %s",
		len(answers), time.Since(began).Round(time.Second)))
	if incomplete != "" {
		remarks = append(remarks, fmt.Sprintf("which of them have data was not checked, since not every spec ran and passed (%s): %d would be wrong",
			incomplete, len(problems)))
		for _, p := range problems {
			GinkgoWriter.Println(p)
		}
		return
	}
	remarks = append(remarks, problems...)
	Expect(problems).To(BeEmpty(), "each query has data, or a reason in showNothing why not")
}, NodeTimeout(monitoringTimeout))
