// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The environment of TestExplore: the seed of the first walk, and how many minutes of processor time walks may take.
const (
	seedEnv    = "MASTHEAD_EXPLORE_SEED"
	minutesEnv = "MASTHEAD_EXPLORE_MINUTES"
)

// TestExplore ends after walksPerMinute for each minute of all tests if it is not out of time before. They are as many
// as a fast processor does in a minute, so that CI walks where others have walked, on every machine.
const (
	stepsPerWalk   = 150
	walksPerMinute = 300
	defaultMinutes = 0.2
	// searchPart is the part of the time that is left for TestSearch: a fifth.
	searchPart = 5
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // A world is small, and a fifth of the time would be spent collecting it.
	ctrl.SetLogger(logr.Discard())
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	utilruntime.ErrorHandlers = nil //nolint:reassign // They write to standard error, and wait.
	os.Exit(m.Run())
}

// processorTime is what the test has taken so far.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// settings returns the seed, and how much processor time all tests may take.
func settings(t *testing.T) (uint64, time.Duration) {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64)
	if err != nil {
		seed = 1
	}
	minutes, err := strconv.ParseFloat(os.Getenv(minutesEnv), 64)
	if err != nil {
		minutes = defaultMinutes
	}
	return seed, time.Duration(minutes * float64(time.Minute))
}

// TestCounterexamples replays what once broke a property. The first line of each file names it.
func TestCounterexamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.steps"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no counterexamples", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".steps"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			steps := strings.Split(strings.TrimSpace(string(content)), "\n")[1:]
			r := run(t, func(w *world) { w.replay(steps) })
			if len(r.violations) > 0 {
				t.Error(r.violations[0])
			}
			if len(r.trace) != len(steps) {
				t.Errorf("Of %d steps %d were possible.", len(steps), len(r.trace))
			}
		})
	}
}

// TestExplore walks until it has done enough, and shortens the first walk that breaks a property.
func TestExplore(t *testing.T) {
	seed, budget := settings(t)
	enough := uint64(walksPerMinute * budget.Minutes())
	budget -= budget / searchPart
	walks, steps, operations := uint64(0), 0, 0
	for ; walks < enough && processorTime(t) < budget; walks++ {
		r := run(t, func(w *world) { w.walk(rand.New(rand.NewPCG(seed+walks, 0)), stepsPerWalk) })
		steps, operations = steps+len(r.trace), operations+r.operations
		if len(r.violations) > 0 {
			property, _, _ := strings.Cut(r.violations[0], ":")
			t.Logf("seed %d, in %d steps: %s", seed+walks, len(r.trace), r.violations[0])
			t.Fatalf("What matters of them, for testdata:\n# %s\n%s", property, strings.Join(shrink(t, r.trace, property), "\n"))
		}
	}
	t.Logf("%d walks of %d steps and %d operations on names in all, from seed %d, in %s of processor time",
		walks, steps, operations, seed, processorTime(t).Round(time.Second))
}
