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
func render(results []result, answers []answer, where string) string {
	parts := []string{where + "."}
	for _, t := range []*report.Table{statuses(results), atRest(results), memory(results), behaviour(answers)} {
		if text := t.String(); text != "" {
			parts = append(parts, strings.TrimSpace(text))
		}
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// duration is a duration for people: in milliseconds below a second, with tenths of a second below a minute, and in
// whole seconds from a minute on.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return report.Milliseconds(d)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// seconds is processor time.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func statuses(results []result) *report.Table {
	t := &report.Table{
		Title: "Status",
		Header: []string{
			"program", "Applications", "first status of all", "processor for it", "requests for it, per Application",
			"change to status: p50", "p99", "longest", "changes",
		},
	}
	for _, r := range results {
		if r.memoryOnly {
			continue
		}
		row := []string{r.name(), strconv.Itoa(r.apps), "did not finish"}
		if r.first > 0 {
			row[2] = duration(r.first)
			if r.complete < r.apps {
				row[2] = fmt.Sprintf("%d of them after %s", r.complete, duration(r.first))
			}
			row = append(row, seconds(r.processor), fmt.Sprintf("%.1f", float64(r.requests.Count(auditlog.Work))/float64(max(r.complete, 1))))
		}
		if len(r.latencies) > 0 {
			for _, p := range []int{50, 99, 100} {
				row = append(row, duration(report.Percentile(r.latencies, p)))
			}
			row = append(row, strconv.Itoa(len(r.latencies)))
		}
		t.Add(row...)
	}
	return t
}

func atRest(results []result) *report.Table {
	t := &report.Table{
		Title: "Requests and processor at idle, per minute",
		Header: []string{
			"program", "Applications", "reads", "writes", "watches begun again", "processor", "reads and writes in the hub", "measured for",
		},
	}
	for _, r := range results {
		if r.memoryOnly || r.idle == nil {
			continue
		}
		perMinute := func(n int) string {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)*time.Minute.Seconds()/r.idle.duration.Seconds()), ".0")
		}
		work, writes := r.idle.onWorkload.Count(auditlog.Work), r.idle.onWorkload.Writes(auditlog.Work)
		hub := ""
		if r.period == 0 {
			hub = perMinute(r.idle.onHub.Count(auditlog.Work))
		}
		t.Add(r.name(), strconv.Itoa(r.apps), perMinute(work-writes), perMinute(writes), perMinute(r.idle.onWorkload.Count(auditlog.Watch)),
			seconds(time.Duration(float64(r.idle.processor)*time.Minute.Seconds()/r.idle.duration.Seconds())), hub, fmt.Sprintf("%.0f s", r.idle.duration.Seconds()))
	}
	return t
}

func memory(results []result) *report.Table {
	t := &report.Table{
		Title:  "Memory",
		Header: []string{"program", "other objects", "Applications", "components", "resident", "in use", "a further component"},
	}
	// The memory of a further component is calculated by comparison with the run that has the smallest number of
	// Applications, of the same program and with the same number of other objects.
	type series struct {
		name    string
		ballast int
	}
	smallest := map[series]result{}
	for _, r := range results {
		if r.heap == 0 {
			continue
		}
		key := series{r.name(), r.ballast}
		further := ""
		if least, ok := smallest[key]; !ok {
			smallest[key] = r
		} else {
			further = fmt.Sprintf("%.2f KiB", float64(r.heap-least.heap)/float64((r.apps-least.apps)*len(components()))/(1<<10))
		}
		t.Add(r.name(), strconv.Itoa(r.ballast), strconv.Itoa(r.apps), strconv.Itoa(r.apps*len(components())),
			report.Mebibytes(r.resident), fmt.Sprintf("%.1f MiB", float64(r.heap)/(1<<20)), further)
	}
	return t
}

func behaviour(answers []answer) *report.Table {
	t := &report.Table{Title: "What each does", Header: []string{"case", "should be", masthead, peerName}}
	for _, a := range answers {
		t.Add(a.question.title, a.question.right, a.by[masthead], a.by[peerName])
	}
	return t
}
