// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/masthead-dev/masthead/test/bench/report"
)

// render makes tables of what was measured.
func render(r result, s settings, machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. %d honest clusters, %d hostile ones, GOMEMLIMIT %s, %d claims a second for %s, %d rounds.\n\n",
		machine, s.honest, len(s.attacks), s.memoryLimit, s.rate, s.paced, s.rounds)

	latencies := report.Table{Title: "Claims of honest clusters", Header: []string{
		"round", "hostile clusters", "up: p50", "p99", "status back: p50", "p99", "processor", "of the hostile", "peak memory",
	}}
	for i, p := range r.without {
		latencies.Add(phaseRow(i, "none", p)...)
		if i < len(r.enrolling) {
			latencies.Add(phaseRow(i, "just enrolled", r.enrolling[i])...)
		}
		if i < len(r.with) {
			latencies.Add(phaseRow(i, "after "+r.said[i].Round(time.Second).String(), r.with[i])...)
		}
	}
	without, enrolling, with := pooled(r.without), pooled(r.enrolling), pooled(r.with)
	latencies.Add(ratioRow("just enrolled", enrolling, without)...)
	latencies.Add(ratioRow("later", with, without)...)
	b.WriteString(latencies.String() + "\n")

	memory := report.Table{Title: "The manager", Header: []string{"", "before", "most with them", "over what it needs without", "after they were un-enrolled"}}
	if len(r.peak) > 0 {
		// The need of the first round: later rounds begin with memory that the garbage collector has not returned yet.
		most, need := slices.Max(r.peak), r.without[0].peak
		memory.Add("resident", report.Mebibytes(r.before.resident), report.Mebibytes(most), report.Mebibytes(most-need), report.Mebibytes(r.after.resident))
		memory.Add("heap in use", report.Mebibytes(r.before.inUse.Heap), "", "", report.Mebibytes(r.after.inUse.Heap))
		memory.Add("goroutines", fmt.Sprint(r.before.goroutines), "", "", fmt.Sprint(r.after.goroutines))
		memory.Add("open descriptors", fmt.Sprint(r.before.descriptors), "", "", fmt.Sprint(r.after.descriptors))
		memory.Add("metric series of hostile clusters", "0", "", "", strings.Join(append([]string{fmt.Sprint(len(r.series))}, r.series...), " "))
		memory.Add("requests to where they redirect", "", fmt.Sprint(r.trapped), "", "")
	}
	b.WriteString(memory.String() + "\n")

	conditions := report.Table{Title: "What is said of the hostile clusters", Header: []string{"API server", "conditions that are False, and their reasons"}}
	for _, a := range s.attacks {
		if wrong, ok := r.conditions[a.Name]; ok {
			conditions.Add(a.Name, reasons(wrong))
		}
	}
	b.WriteString(conditions.String())
	return b.String()
}

// reasons lists the conditions, each with its reason.
func reasons(conditions []condition) string {
	words := make([]string, 0, len(conditions))
	for _, c := range conditions {
		words = append(words, c.Type+" "+c.Reason)
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

func phaseRow(round int, name string, p phase) []string {
	return []string{
		fmt.Sprint(round + 1), name,
		report.Milliseconds(report.Percentile(p.up, 50)), report.Milliseconds(report.Percentile(p.up, 99)),
		report.Milliseconds(report.Percentile(p.back, 50)), report.Milliseconds(report.Percentile(p.back, 99)),
		share(p.processor, p.took), share(p.servers, p.took), report.Mebibytes(p.peak),
	}
}

// share is how much of a core was used.
func share(processor, took time.Duration) string {
	if took <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*processor.Seconds()/took.Seconds())
}

func ratioRow(name string, with, without phase) []string {
	return []string{
		"ratio", name, ratio(with.up, without.up, 50), ratio(with.up, without.up, 99), ratio(with.back, without.back, 50),
		ratio(with.back, without.back, 99), "", "", "",
	}
}

// pooled combines all rounds.
func pooled(phases []phase) (all phase) {
	for _, p := range phases {
		all.up, all.back = append(all.up, p.up...), append(all.back, p.back...)
		all.peak = max(all.peak, p.peak)
	}
	return all
}

// ratio compares a percentile with and without.
func ratio(with, without []time.Duration, percentile int) string {
	base := report.Percentile(without, percentile)
	if base == 0 || len(with) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(report.Percentile(with, percentile))/float64(base))
}
