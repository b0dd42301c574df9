// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// guardsPage says what happened without each guard. TestGuardsPreventHarm writes it.
const guardsPage = "../../docs/design/guards.md"

// guard is code whose removal does harm.
type guard struct {
	Guard string `json:"guard"`
	// File is relative to the root of the module. Remove occurs in it once; With replaces it.
	File   string `json:"file"`
	Remove string `json:"remove"`
	With   string `json:"with"`
	// Test is one of the file's package that fails without the guard, for harm that walks rarely find.
	Test string `json:"test"`
}

func readGuards(t *testing.T) []guard {
	t.Helper()
	content, err := os.ReadFile("guards.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []guard
	if err := yaml.UnmarshalStrict(content, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// without returns the content of a guard's file without it.
func (g guard) without(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", g.File))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(content), g.Remove); n != 1 {
		t.Fatalf("%s is %d times in %s:\n%s", g.Guard, n, g.File, g.Remove)
	}
	return strings.Replace(string(content), g.Remove, g.With, 1)
}

// guardsHead is the beginning of guardsPage, before a row for each property that breaks.
const guardsHead = `# Guards of the controllers

A guard is code without which a controller does harm in some order of events. Each of these was removed from the agent,
discovery or references, which were then walked through [orders of events](../development.md#orders-of-events) until
that broke a property. ` + "`make guards`" + ` does that again, and writes this page. A test is named where the
world of the walks is too small.

| What breaks | Without these guards |
|---|---|
`

// row returns a guard as guardsPage shows it.
func (g guard) row() string { return fmt.Sprintf("%s (`%s`)", g.Guard, g.File) }

// harmsOn returns what breaks without each guard, as a page says.
func harmsOn(page string) map[string]string {
	harms := map[string]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 2 {
			continue
		}
		for row := range strings.SplitSeq(cells[1], "<br>") {
			name, _, _ := strings.Cut(row, " (`")
			harms[name] = cells[0]
		}
	}
	return harms
}

// pageOf returns guardsPage with what breaks without each guard.
func pageOf(guards []guard, harms map[string]string) string {
	var order []string
	rows := map[string][]string{}
	for _, g := range guards {
		harm := harms[g.Guard]
		if harm == "" {
			continue
		}
		if rows[harm] == nil {
			order = append(order, harm)
		}
		rows[harm] = append(rows[harm], g.row())
	}
	page, missing := guardsHead, len(guards)
	for _, harm := range order {
		page += fmt.Sprintf("| %s | %s |\n", harm, strings.Join(rows[harm], "<br>"))
		missing -= len(rows[harm])
	}
	if missing > 0 {
		page += fmt.Sprintf("\n%d more have not been removed yet.\n", missing)
	}
	return page
}

// TestGuardsAreThere checks that each guard is where the list says, and that guardsPage has its harm.
func TestGuardsAreThere(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(guardsPage)
	if err != nil {
		t.Fatal(err)
	}
	guards, harms := readGuards(t), harmsOn(string(page))
	for _, g := range guards {
		g.without(t)
		if harms[g.Guard] == "" {
			t.Errorf("%s does not say what breaks without %q: run `make guards`.", guardsPage, g.Guard)
		}
	}
	if string(page) != pageOf(guards, harms) {
		t.Errorf("%s is not what `make guards` writes, or is about guards that are gone.", guardsPage)
	}
}
