// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metricreference

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// Page is the path of the reference in the repository.
const Page = "docs/reference/metrics.md"

const preface = `# Metrics

<!-- Generated from the code by "make generate"; do not edit. -->

What the manager publishes at ` + "`/metrics`" + `. [Operations](../operations.md#metrics) says how it is read, and which alerts
and dashboards there are.

A metric *of a cluster* has the labels ` + "`%[1]s`" + ` and ` + "`%[2]s`" + `, which are the namespace and the name of
the object in the hub that enrols the cluster, and ` + "`%[3]s`" + `, which says what found it, such as ` + "`capi`" + ` or ` + "`kubeconfig`" + `.
The hub itself has no namespace, and the name and the source ` + "`hub`" + `. Together they are the [cluster
name](../enrolment.md#identity-and-identifier). Series of a cluster are deleted when it is un-enrolled; those of its
queues, claims, copies, Applications and references also when it is disconnected.

Labels that several metrics have, always with the same values:

`

// Markdown returns the reference as a page.
func Markdown() string {
	groups := Groups()
	var b strings.Builder
	fmt.Fprintf(&b, preface, metric.LabelClusterNamespace, metric.LabelClusterName, metric.LabelSource)
	shared := sharedLabels(groups)
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		fmt.Fprintf(&b, "- `%s`: %s\n", name, escape(shared[name]))
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n", g.Title)
		for _, d := range g.Metrics {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, labels(d, shared), meaning(d))
		}
	}
	return b.String()
}

// sharedLabels returns the values of labels that several metrics have, and which mean the same in all of them.
func sharedLabels(groups []Group) map[string]string {
	values, count := map[string]string{}, map[string]int{}
	for _, g := range groups {
		for _, d := range g.Metrics {
			for _, l := range d.Labels {
				if count[l.Name]++; count[l.Name] > 1 && values[l.Name] != l.Values {
					l.Values = "" // Each metric says what they are.
				}
				values[l.Name] = l.Values
			}
		}
	}
	maps.DeleteFunc(values, func(name, value string) bool { return value == "" || count[name] == 1 })
	return values
}

// labels returns the cell with the labels of a metric. Those that several metrics share are explained once, above.
func labels(d metric.Definition, shared map[string]string) string {
	var cells []string
	if d.PerCluster {
		cells = append(cells, "*of a cluster*")
	}
	for _, l := range d.Labels {
		text := "`" + l.Name + "`"
		if shared[l.Name] == "" {
			text += ": " + escape(l.Values)
		}
		cells = append(cells, text)
	}
	return strings.Join(cells, "<br>")
}

// meaning returns the cell with the help text of a metric.
func meaning(d metric.Definition) string {
	text := escape(d.Help)
	if d.See != "" {
		text += fmt.Sprintf(" [More](../%s)", d.See)
	}
	return text
}

// escape escapes Markdown.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(text)
}
