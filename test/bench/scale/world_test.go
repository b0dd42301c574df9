// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/test/localfleet"
	"github.com/masthead-dev/masthead/test/manyclusters"
)

// TestFleetOfAHundred connects a hundred clusters to a manager with the race detector, kills it, and lets all but one
// of them leave. What they took has to end with them, and no race may be found.
func TestFleetOfAHundred(t *testing.T) {
	const n = 100
	repository, err := localfleet.Repository()
	if err != nil {
		t.Fatal(err)
	}
	manager := filepath.Join(t.TempDir(), "manager")
	// The flags are those of the tests, so that nothing is compiled twice.
	build := exec.CommandContext(t.Context(), "go", "build", "-race", "-gcflags=all=-d=checkptr=0", "-o", manager, "./cmd/manager")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the manager: %v\n%s", err, out)
	}
	t.Setenv("MASTHEAD_MANAGER_BIN", manager)
	w, err := newWorld(t.Context(), settings{patience: 2 * testenv.Patience, memoryLimit: "4GiB"}, n)
	if w != nil {
		t.Cleanup(func() {
			if err := w.down(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	var r result
	for _, step := range []func(context.Context, *result) error{w.measureOne, w.measureStart, w.measureCrash} {
		if err := step(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	all, err := w.manager.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.leave(t.Context(), 1, n); err != nil {
		t.Fatal(err)
	}
	// A share of a cluster may be left: that many requests are answered or sent at any time.
	share := (all.Value(goroutines) - r.one.goroutines) / (n - 1)
	err = w.until(t.Context(), "goroutines of clusters that left go on", func() (bool, error) {
		for i := 1; i < n; i++ {
			if w.proxy.Watches(manyclusters.Name(i)) > 0 {
				return false, nil
			}
		}
		now, err := w.manager.Metrics(t.Context())
		return err == nil && now.Value(goroutines) < r.one.goroutines+share, err
	})
	if err != nil {
		t.Errorf("%v\nwith one cluster %.0f goroutines, with %d %.0f", err, r.one.goroutines, n, all.Value(goroutines))
	}
	// The race detector's status is an error.
	if err := w.manager.Stop(t.Context()); err != nil {
		t.Errorf("the manager ends with %v:\n%s", err, w.manager.LogTail(60))
	}
}
