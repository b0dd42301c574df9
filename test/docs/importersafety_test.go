// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/masthead-dev/masthead/internal/test/verdict"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// importerTests are the folders whose tests are about imports.
var importerTests = regexp.MustCompile(`^(pkg/controllers/importer|pkg/takeover|pkg/reflection|test/takeover|internal/test/fakecloud|test/e2e)/`)

// TestThreatsHaveGuardsAndTests compares the table of threats in docs/design/importer-safety.md with the tests and the
// policies: every threat names a guard and tests that exist and are about imports, and every policy is a guard.
func TestThreatsHaveGuardsAndTests(t *testing.T) {
	const page, least = "docs/design/importer-safety.md", 24
	_, table, _ := strings.Cut(files(t, ".md")[page], "<!-- table threats -->\n")
	table, _, closed := strings.Cut(table, "<!-- end of table threats -->\n")
	if !closed {
		t.Fatalf("%s has no table of threats", page)
	}
	functions := matches(files(t, "_test.go"), `(?m)^func (Test\w+)\(`)
	guards, rows := "", strings.Split(strings.TrimSpace(table), "\n")
	for i, row := range rows[min(2, len(rows)):] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 4 || cells[0] != strconv.Itoa(i+1) {
			t.Errorf("%s: row %d is not numbered, or has not four cells: %s", page, i+1, row)
			continue
		}
		guards += cells[2] + "\n"
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 || cells[2] == "" {
			t.Errorf("%s: threat %d has no guard, or no test", page, i+1)
		}
		for _, m := range named {
			if !importerTests.MatchString(functions[m[1]]) {
				t.Errorf("%s: threat %d names %s, which is no test of imports", page, i+1, m[1])
			}
		}
	}
	if n := len(rows) - 2; n < least {
		t.Errorf("%s: want %d threats at least, got %d", page, least, n)
	}
	policies, err := takeover.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range policies {
		if name, _, _ := strings.Cut(p.Policy.Name, "."); !strings.Contains(guards, "`"+name+"`") {
			t.Errorf("%s: no threat names the policy %q as its guard", page, name)
		}
	}
}

// TestReasonsOfImportsAreArranged checks that a test of the importer produces each reason for which an import stops or
// waits. The table of verdicts says what a reason means, but not that the importer ever reports it.
func TestReasonsOfImportsAreArranged(t *testing.T) {
	var tests strings.Builder
	for path, text := range files(t, "_test.go") {
		if strings.HasPrefix(path, "pkg/controllers/importer/") && !strings.HasSuffix(path, "/controller_verdict_test.go") {
			tests.WriteString(text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(verdict.Reasons(t, "apis/fleet/v1alpha1", "of a ClusterImport"))) {
		if !regexp.MustCompile(`\bfleetv1alpha1\.` + name + `\b`).MatchString(tests.String()) {
			t.Errorf("no test of pkg/controllers/importer has an import come to %s", name)
		}
	}
}
