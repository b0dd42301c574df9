// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"os"
	"path/filepath"
	"regexp"
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

// TestGuardsAreThere checks that each guard is where the list says, and that guardsPage has its harm.
func TestGuardsAreThere(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(guardsPage)
	if err != nil {
		t.Fatal(err)
	}
	guards := readGuards(t)
	for _, g := range guards {
		g.without(t)
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta("| "+g.Guard+" | `"+g.File+"` | ") + `[^|]+ \|$`).Match(page) {
			t.Errorf("%s does not say what breaks without %q: run `make guards`.", guardsPage, g.Guard)
		}
	}
	if rows := strings.Count(string(page), "\n| ") - 1; rows != len(guards) {
		t.Errorf("%s has %d rows for %d guards.", guardsPage, rows, len(guards))
	}
}
