// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build guards

package explore

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// guardsEnv is a regular expression of the guards that TestGuardsPreventHarm removes.
const guardsEnv = "MASTHEAD_EXPLORE_GUARDS"

// What breaks, in the output of a test without a guard.
var (
	brokenProperty = regexp.MustCompile(`_test\.go:\d+: (?:seed \d+, in \d+ steps: |"[^"]*" with \[[^\n]*\]: )?([A-Z][^:\n]*): `)
	failedTest     = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
)

// TestGuardsPreventHarm removes each guard, and walks until a property breaks. If none does, a test of the guard's
// package has to fail. That takes minutes for some, so that `make test` leaves it out, by its build tag.
func TestGuardsPreventHarm(t *testing.T) {
	selected := regexp.MustCompile(os.Getenv(guardsEnv))
	before, err := os.ReadFile(guardsPage)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	guards, harms := readGuards(t), harmsOn(string(before))
	for _, g := range guards {
		if !selected.MatchString(g.Guard) {
			continue
		}
		if harms[g.Guard] = g.harm(t); harms[g.Guard] == "" {
			t.Errorf("Nothing is broken without %q. Delete it, or extend the world.", g.Guard)
		}
		t.Logf("%s: %s", g.row(), harms[g.Guard])
	}
	if err := os.WriteFile(guardsPage, []byte(pageOf(guards, harms)), 0o644); err != nil {
		t.Error(err)
	}
}

// harm returns which property or test breaks without a guard; nothing if none does.
func (g guard) harm(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file, err := filepath.Abs(filepath.Join("..", "..", g.File))
	if err != nil {
		t.Fatal(err)
	}
	replacement, overlay, program := filepath.Join(dir, "file.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "explore.test")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: replacement}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{replacement: g.without(t), overlay: string(list)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-vet=off", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%s cannot be removed: %v\n%s", g.Guard, err, out)
	}
	if broken := walkUntilBroken(t, program); broken != "" {
		return broken
	}
	in := filepath.Dir(g.File)
	switch in {
	case "pkg/controllers/agent", "pkg/controllers/discovery", "pkg/controllers/references":
		if g.Test == "" {
			return "" // Most of their own tests are with API servers.
		}
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-vet=off", "-run", g.Test, "./"+in)
	command.Dir = filepath.Join("..", "..") // They are another module's.
	out, _ := command.CombinedOutput()      // It is to fail.
	if found := failedTest.FindSubmatch(out); found != nil {
		return "`" + string(found[1]) + "`"
	}
	return ""
}

// walkUntilBroken runs the explorer until it reports the first broken property, which it would then shorten.
func walkUntilBroken(t *testing.T, program string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	command := exec.CommandContext(ctx, program, "-test.v", "-test.run=TestCounterexamples|TestExplore|TestSearch")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = command.Wait() }()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := brokenProperty.FindStringSubmatch(lines.Text()); found != nil {
			return found[1]
		}
	}
	return ""
}
