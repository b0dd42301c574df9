// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package printed

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

const (
	// walk is the page that shows every command of the plugin.
	walk = "docs/walk.md"
	// reference is the page that explains what each of them does.
	reference = "docs/cli.md"
)

var update = flag.Bool("update", false, "write what commands print into "+walk+" and "+reference)

// TestWalkAsPrinted follows the page on the fleet of the demo, on which everything is real: etcd, kube-apiserver,
// Crossplane, Cluster API and the manager run as processes.
func TestWalkAsPrinted(t *testing.T) {
	m := newMachine(t)
	startFleet(t, m)
	path := filepath.Join(testenv.Root(), filepath.FromSlash(walk))
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, walk, rewritten(string(page), func(s step) []string { return m.showStep(t, s) }))
}

// keep checks that a page has the given content, or with -update writes it.
func keep(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(testenv.Root(), filepath.FromSlash(name))
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case content == string(page):
	case *update:
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not show what commands print (`make walk` writes it): -the page, +printed:\n%s", name,
			cmp.Diff(strings.Split(string(page), "\n"), strings.Split(content, "\n")))
	}
}

// startFleet makes the machine one on which `make demo` has installed Masthead and enrolled nothing yet. The cluster w2
// has none of the rights that Masthead needs: the page grants them.
func startFleet(t *testing.T, m *machine) {
	t.Helper()
	log.SetLogger(logr.Discard()) // Warnings to the fleet's clients do not belong on the page.
	fleet, err := localfleet.Up(t.Context(), localfleet.Options{
		Dir: t.TempDir(), Workloads: localfleet.WorkloadNames(2), Log: t.Output(),
		WithCrossplane: true, WithClusterAPI: true, WithKwok: true, StopWithParent: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	links := map[string]string{".localfleet": fleet.Dir(), "hack": filepath.Join(testenv.Root(), "hack")}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(m.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	names, err := fleet.Clusters()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		m.kubeconfigs[name] = fleet.Kubeconfig(name)
	}
	if err := harness.Install(t.Context(), fleet); err != nil {
		t.Fatal(err)
	}
	m.must(t, "hub", "kubectl apply --server-side -k config/imports")
	m.must(t, "w1", "kubectl apply --server-side -f config/workload -f config/samples/workload/claims-rights.yaml -f config/samples/workload/health-checks-rights.yaml")

	build(t, filepath.Join(m.bin, "kubectl-masthead"), "./cmd/kubectl-masthead")
	t.Setenv("MASTHEAD_MANAGER_BIN", filepath.Join(m.folder, "bin", "manager"))
	manager, err := harness.StartManager(t.Context(), fleet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the manager:\n%s", manager.LogTail(60))
		}
		if err := manager.Kill(); err != nil {
			t.Error(err)
		}
	})
	m.replace = strings.NewReplacer("127.0.0.1:18080", manager.MetricsAddress())
}

// showStep runs a command, and returns what it shows on a terminal, without what differs from run to run. If the page
// already says that, apart from what it leaves out, showStep returns what the page says.
func (m *machine) showStep(t *testing.T, s step) []string {
	t.Helper()
	if file, ok := strings.CutPrefix(s.command, "cat "); ok { // It shows a file that the reader has.
		if err := os.WriteFile(filepath.Join(m.folder, file), []byte(strings.Join(s.prints, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return s.prints
	}
	var out, text string
	var failed error
	shows, says := false, len(s.prints) > 0
	// After the timeout, the last output counts.
	_ = wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience(s.command), true, func(context.Context) (bool, error) {
		out, failed = m.run(t, s.where, "exec 2>&1; "+s.command)
		text = strings.TrimRight(constant(s.command, out), "\n")
		shows = failed == nil && says == (text != "") && matches(s.prints, text)
		return shows || failed == nil && !says, nil
	})
	switch {
	case shows:
		return s.prints
	case failed != nil:
		t.Errorf("%s$ %s\n%s%v", s.where, s.command, out, failed)
	}
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// patience is how long a command is repeated until it prints what the page says. A command that changes something is
// not repeated.
func patience(command string) time.Duration {
	if strings.HasPrefix(command, "kubectl wait ") {
		return 2 * time.Minute // The object that it waits for has to exist.
	}
	verb, ok := strings.CutPrefix(command, "kubectl masthead ")
	verb, _, _ = strings.Cut(verb, " ")
	switch {
	case !ok || !slices.Contains([]string{"clusters", "claims", "apps", "imports", "why"}, verb):
		return 0
	case *update:
		return 10 * time.Second // The page is expected to say something else.
	}
	return time.Minute // On a busy machine, clusters are slow to answer.
}

// TestSessionIsOnTheWalk checks that the walk has each command of the README's session with the same output, in the
// same order.
func TestSessionIsOnTheWalk(t *testing.T) {
	var walked []step
	for _, b := range blocks(t, walk) {
		walked = append(walked, b.steps...)
	}
	found := 0
	for _, b := range blocks(t, readme) {
		if b.section != "A session" {
			continue
		}
		for _, s := range b.steps {
			at := slices.IndexFunc(walked, func(w step) bool {
				return w.where == s.where && strings.ReplaceAll(w.command, " --allow-loopback-endpoints", "") == s.command &&
					len(w.prints) > 0 && matches(s.prints, strings.Join(w.prints, "\n"))
			})
			if at < 0 {
				t.Fatalf("%s shows what is not on %s from there on: %s$ %s\n%s", b.place, walk, s.where, s.command, strings.Join(s.prints, "\n"))
			}
			walked = walked[at+1:]
			found++
		}
	}
	if found < 4 {
		t.Errorf("want the session of %s, got %d commands", readme, found)
	}
}

// TestReferenceShowsWhatIsPrinted checks that the output that the page of the commands shows is also on the page of the
// walk, or is a table of another fleet with the columns that the command has there.
func TestReferenceShowsWhatIsPrinted(t *testing.T) {
	var walked []step
	for _, b := range blocks(t, walk) {
		for _, s := range b.steps {
			s.command = strings.ReplaceAll(s.command, " --allow-loopback-endpoints", "")
			walked = append(walked, s)
		}
	}
	page, err := os.ReadFile(filepath.Join(testenv.Root(), filepath.FromSlash(reference)))
	if err != nil {
		t.Fatal(err)
	}
	keep(t, reference, rewritten(string(page), func(s step) []string {
		said := s.prints
		if len(said) == 0 || isTable(walked, s) {
			return said
		}
		found := false
		for _, w := range walked {
			if w.command == s.command {
				found, said = true, w.prints
			}
		}
		if !found {
			t.Errorf("%s shows what is printed by %q, which is not on %s", reference, s.command, walk)
		}
		return said
	}))
}

// isTable reports whether a step shows a table with the columns that its command has in one of the steps walked.
func isTable(walked []step, s step) bool {
	at := slices.IndexFunc(s.prints, heading.MatchString)
	if at < 0 {
		return false
	}
	columns := cells(s.prints[at])
	for _, row := range s.prints[at:] {
		if len(cells(row)) != len(columns) {
			return false
		}
	}
	return slices.ContainsFunc(walked, func(w step) bool {
		return strings.HasPrefix(w.command+" ", s.command+" ") &&
			slices.ContainsFunc(w.prints, func(line string) bool { return heading.MatchString(line) && slices.Equal(cells(line), columns) })
	})
}

func TestIsTable(t *testing.T) {
	walked := []step{{command: "kubectl masthead clusters", prints: []string{"NAME   LAST SEEN", "w1     now"}}}
	cases := map[string]struct {
		reason, command string
		prints          []string
		want            bool
	}{
		"OtherRows":    {"Another fleet has other clusters.", "kubectl masthead clusters", []string{"NAME       LAST SEEN", "shop       9s ago", "other      now"}, true},
		"OtherColumns": {"Columns are what the command has.", "kubectl masthead clusters", []string{"NAME   SEEN", "w1     now"}, false},
		"OtherCommand": {"Of that command.", "kubectl masthead claims", []string{"NAME   LAST SEEN", "w1     now"}, false},
		"CellMissing":  {"A row has a cell for each.", "kubectl masthead clusters", []string{"NAME   LAST SEEN", "w1"}, false},
		"NoTable":      {"What is no table is not checked like one.", "kubectl masthead clusters", []string{"No cluster is enrolled."}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isTable(walked, step{command: tc.command, prints: tc.prints}); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
