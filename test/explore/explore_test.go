// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func TestExplore(t *testing.T) {
	seed, walks, steps := uint64(number("SEED", 1)), number("WALKS", 20), number("STEPS", 150)
	began, total := time.Now(), 0
	for i := range walks {
		walked := seed + uint64(i)
		r := run(t, func(w *world) { w.walk(rand.New(rand.NewPCG(walked, 0)), steps) })
		total += r.steps
		if debugTrace || os.Getenv("VERBOSE") != "" {
			t.Log(walked, r.steps, r.violations)
		}
		if len(r.violations) > 0 {
			property, _, _ := strings.Cut(r.violations[0], ":")
			short := r.trace
			if os.Getenv("NOSHRINK") == "" {
				short = shrink(t, r.trace, property)
			}
			t.Errorf("seed %d, %d steps, shortened to %d: %s\n%s", walked, r.steps, len(short), r.violations[0], strings.Join(short, "\n"))
			if t.Failed() && number("MAXFAIL", 1) <= 1 {
				break
			}
		}
	}
	t.Logf("%d walks of %d steps from seed %d in %s", walks, total, seed, time.Since(began).Round(time.Millisecond))
}

func TestReplay(t *testing.T) {
	file := os.Getenv("STEPS_FILE")
	if file == "" {
		t.Skip("no file")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	steps := strings.Split(strings.TrimSpace(string(b)), "\n")
	r := run(t, func(w *world) { w.replay(steps) })
	t.Logf("%v", r.violations)
	if os.Getenv("SHRINK") != "" && len(r.violations) > 0 {
		property, _, _ := strings.Cut(r.violations[0], ":")
		t.Logf("%s", strings.Join(shrink(t, steps, property), "\n"))
	}
}
