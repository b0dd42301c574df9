// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package printed

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
)

// rule replaces something in the output of commands that differs from run to run.
type rule struct {
	// of is a part of the commands that the rule applies to; empty for all.
	of, pattern, replacement string
}

// rules returns all rules, in the order in which they are applied. A page that shows their result says so.
func rules() []rule {
	return []rule{
		// How many reasons there are to wait depends on how fast the machine is.
		{"", `(?m)^waiting: .*\n`, ""},
		{"", `\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`, "<uid>"},
		{"", `\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "<time>"},
		{"", `\b\d{8}-\d{6}\b`, "<time>"},
		{"", `127\.0\.0\.1:\d+`, "127.0.0.1:<port>"},
		// The suffix that Kubernetes and Crossplane add to a name to make it unique.
		{"", `\b(sqldb)-[0-9a-z]{5}\b`, "$1-<x>"},
		// Measured values.
		{"masthead top", `(^|[ \n])\d+(\.\d+)?([KMG]i|µs|ms|s|)\b`, "$1<n>"},
	}
}

// constant returns what a command prints, without what differs from run to run. The columns of tables are aligned
// again.
func constant(command, text string) string {
	for _, r := range rules() {
		if strings.Contains(command, r.of) {
			text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.replacement)
		}
	}
	return aligned(text)
}

var heading = regexp.MustCompile(`^[A-Z][A-Z/]*( [A-Z/]+)?(   +[A-Z][A-Z/]*( [A-Z/]+)?)+ *$`)

// aligned makes the columns of tables as wide as they have to be, with three spaces between them, as kubectl does.
func aligned(text string) string {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if !heading.MatchString(lines[i]) {
			continue
		}
		end, columns := i+1, len(cells(lines[i]))
		for end < len(lines) && len(cells(lines[end])) == columns {
			end++
		}
		var table strings.Builder
		w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
		for _, line := range lines[i:end] {
			_, _ = fmt.Fprintln(w, strings.Join(cells(line), "\t"))
		}
		_ = w.Flush()
		copy(lines[i:end], strings.Split(table.String(), "\n"))
		i = end - 1
	}
	return strings.Join(lines, "\n")
}

var between = regexp.MustCompile(`   +`)

func cells(line string) []string { return between.Split(strings.TrimSpace(line), -1) }

func TestConstant(t *testing.T) {
	cases := map[string]struct {
		reason, command, text, want string
	}{
		"Time":     {"A time is another one each time.", "x", `"at": "2026-11-23T12:00:00Z"`, `"at": "<time>"`},
		"Port":     {"Ports are those that were free.", "x", "https://127.0.0.1:23952 is", "https://127.0.0.1:<port> is"},
		"UID":      {"So are UIDs.", "x", "d55b08f9-c37f-462f-825b-4afb1a347585.", "<uid>."},
		"Name":     {"Crossplane makes up names.", "x", "CompositeMySQLInstance sqldb-x7k2p (hub)", "CompositeMySQLInstance sqldb-<x> (hub)"},
		"Waiting":  {"How many steps a connection takes differs from run to run.", "x", "a\nwaiting: Connecting: x\nb\n", "a\nb\n"},
		"Measured": {"What is measured is what it is.", "kubectl masthead top", "w1   12Mi   1310   0.20\n", "w1   <n>   <n>   <n>\n"},
		"NotMeasured": {
			"Figures of other commands mean something.", "kubectl masthead apps", "wordpress   5/5\n", "wordpress   5/5\n",
		},
		"Table": {
			"A column is as wide as what is in it.", "kubectl masthead top",
			"CLUSTER   MEMORY   LAST SEEN\nw1        1234Mi   now\nlonger    1Mi      now\nwell\n",
			"CLUSTER   MEMORY   LAST SEEN\nw1        <n>      now\nlonger    <n>      now\nwell\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, constant(tc.command, tc.text)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
