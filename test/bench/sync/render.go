// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/bench/report"
)

// render makes the tables.
func render(results []result, where string, s settings) string {
	parts := []string{where + "."}
	for _, t := range []*report.Table{throughput(results), latencies(results, s.rate), atRest(results)} {
		if text := t.String(); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n") + "\n"
}

func perObject(c auditlog.Counts, n int) float64 { return float64(c.Count(auditlog.Work)) / float64(n) }

func requests(workloads, hub auditlog.Counts, n int) string {
	a, b := perObject(workloads, n), perObject(hub, n)
	return fmt.Sprintf("%.2f + %.2f = %.2f", a, b, a+b)
}

func throughput(results []result) *report.Table {
	t := &report.Table{
		Title: "As fast as possible",
		Header: []string{
			"program", "clusters", "claims", "claims created /s", "up /s", "status back /s",
			"requests per claim: workload cluster + hub", "processor per claim", "peak memory",
		},
	}
	for _, r := range results {
		name, clusters, objects := r.subject, strconv.Itoa(r.clusters), strconv.Itoa(r.objects)
		if r.subject == none && r.up > 0 && r.back > 0 {
			t.Add(name, clusters, objects, "", rate(report.PerSecond(r.objects, r.up)), rate(report.PerSecond(r.objects, r.back)), "3.00 + 2.00 = 5.00", "", "")
			continue
		}
		if r.up == 0 || r.back == 0 || r.onHub == nil {
			t.Add(name, clusters, objects, "did not finish")
			continue
		}
		t.Add(name, clusters, objects,
			rate(report.PerSecond(r.objects, r.creating)), rate(report.PerSecond(r.objects, r.up)), rate(report.PerSecond(r.objects, r.back)),
			requests(r.onWorkloads, r.onHub, r.objects), report.Milliseconds(r.processor/time.Duration(r.objects)), report.Mebibytes(r.peak))
	}
	return t
}

func rate(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

func latencies(results []result, perSecond int) *report.Table {
	t := &report.Table{
		Title: fmt.Sprintf("At %d claims a second", perSecond),
		Header: []string{
			"program", "clusters", "up: p50", "p90", "p99", "status back: p50", "p90", "p99", "requests per claim: workload cluster + hub",
			"processor per claim", "peak memory",
		},
	}
	for _, r := range results {
		if r.paced == nil {
			continue
		}
		row := []string{r.subject, strconv.Itoa(r.clusters)}
		for _, p := range []int{50, 90, 99} {
			row = append(row, report.Milliseconds(report.Percentile(r.paced.up, p)))
		}
		for _, p := range []int{50, 90, 99} {
			row = append(row, report.Milliseconds(report.Percentile(r.paced.back, p)))
		}
		t.Add(append(row, requests(r.paced.onWorkloads, r.paced.onHub, r.paced.objects),
			report.Milliseconds(r.paced.processor/time.Duration(r.paced.objects)), report.Mebibytes(r.paced.peak))...)
	}
	return t
}

func atRest(results []result) *report.Table {
	t := &report.Table{
		Title: "At rest",
		Header: []string{
			"program", "clusters", "resident at the start", "a further cluster", "two minutes later", "a further cluster", "in use, with claims",
			"a further cluster",
			"time idle", "requests", "watches begun again", "leases", "probes",
		},
	}
	first := map[string]result{}
	for _, r := range results {
		if !r.withLatency || r.rest.Resident == 0 {
			continue
		}
		one, ok := first[r.subject]
		if !ok {
			first[r.subject], one = r, r
		}
		row := []string{r.subject, strconv.Itoa(r.clusters), report.Mebibytes(r.rest.Resident), further(r, one, residentAtStart)}
		row = append(row, settledText(r), further(r, one, residentSettled))
		row = append(row, inUseText(r), further(r, one, inUse))
		if r.idle != nil {
			row = append(row, r.idle.duration.String())
			for _, class := range []auditlog.Class{auditlog.Work, auditlog.Watch, auditlog.Lease, auditlog.Probe} {
				row = append(row, strconv.Itoa(r.idle.requests.Count(class)))
			}
		}
		t.Add(row...)
	}
	return t
}

func residentAtStart(r result) int64 { return r.rest.Resident }

func residentSettled(r result) int64 { return r.settled.Resident }

func settledText(r result) string {
	if r.settled.Resident == 0 {
		return ""
	}
	return report.Mebibytes(r.settled.Resident)
}

// inUse is the memory that the program uses at the end; zero if that is not known.
func inUse(r result) int64 {
	if r.idle == nil {
		return 0
	}
	return r.idle.inUse.Heap + r.idle.inUse.Stacks
}

func inUseText(r result) string {
	if inUse(r) == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f MiB", float64(inUse(r))/(1<<20))
}

// further is the memory for each further cluster of a fleet, compared with a smaller fleet.
func further(r, smaller result, memory func(result) int64) string {
	if r.clusters == smaller.clusters || memory(r) == 0 || memory(smaller) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f MiB", float64(memory(r)-memory(smaller))/float64(r.clusters-smaller.clusters)/(1<<20))
}
