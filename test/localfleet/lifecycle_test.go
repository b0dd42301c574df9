// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parentVariable makes this test program play the parent of a fleet, see TestFleetDiesWithParent.
const parentVariable = "LOCALFLEET_TEST_PARENT_OF"

// TestFleetDiesWithParent: a test that is killed leaves no process of its fleet behind, and the next one can use the
// folder.
func TestFleetDiesWithParent(t *testing.T) {
	dir := os.Getenv(parentVariable)
	if dir != "" {
		if _, err := Up(t.Context(), Options{Dir: dir, Log: t.Output(), StopWithParent: true}); err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("\nup\n")
		select {}
	}

	dir = t.TempDir()
	parent := exec.Command(os.Args[0], "-test.run=^TestFleetDiesWithParent$", "-test.timeout=5m")
	parent.Env = append(os.Environ(), parentVariable+"="+dir)
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = parent.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for scanner := bufio.NewScanner(output); scanner.Scan() && scanner.Text() != "up"; {
		lines = append(lines, scanner.Text())
	}
	children, err := leftovers(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(children) != 3 {
		t.Fatalf("want etcd, API server and controller manager of the hub running, got %v; the parent said:\n%s", children, strings.Join(lines, "\n"))
	}
	if err = parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	eventually(t, "all processes have ended with their parent", func() bool {
		found, err := leftovers(dir)
		return err == nil && len(found) == 0
	})

	f, err := Up(t.Context(), Options{Dir: dir, Log: t.Output(), StopWithParent: true})
	if err != nil {
		t.Fatalf("Up() in the folder of a fleet that crashed: %v", err)
	}
	if err := f.Down(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFleetOutlivesCommand tests what cmd/localfleet does: each of its steps is another process, which finds the fleet
// by its folder.
func TestFleetOutlivesCommand(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, Workloads: []string{"w1"}, Log: t.Output()}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if f, err := Load(ctx, dir, nil); err == nil {
			_ = f.Down(ctx)
		}
		checkNoLeftovers(t, dir)
	})
	if _, err := Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	first := pids(t, dir)

	if _, err := Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, pids(t, dir)); diff != "" {
		t.Errorf("Up() of a fleet that runs must start nothing: -want, +got:\n%s", diff)
	}

	f, err := Load(t.Context(), dir, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err = f.Rotate(t.Context(), "w1"); err != nil {
		t.Errorf("without Cluster API core the fleet registers clusters all the same: %v", err)
	}

	killProcess(t, f, "w1", Etcd)
	if _, err = Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	second := pids(t, dir)
	if diff := cmp.Diff(first[HubName], second[HubName]); diff != "" {
		t.Errorf("a workload cluster that died must be replaced without touching the hub: -want, +got:\n%s", diff)
	}
	if second["w1"][APIServer] == first["w1"][APIServer] {
		t.Error("a workload cluster of which a part died must be replaced as a whole")
	}
	checkReady(t, dir)

	killProcess(t, f, HubName, Etcd)
	if _, err = Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	third := pids(t, dir)
	for cluster, processes := range second {
		for process, pid := range processes {
			if third[cluster][process] == pid {
				t.Errorf("%s of cluster %q is still the one of the fleet whose hub died", process, cluster)
			}
		}
	}
	checkReady(t, dir)

	// The folder of a running fleet is removed.
	if err = os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	stopped, err := StopLeftovers(t.Context(), dir)
	if err != nil || stopped != 6 {
		t.Errorf("StopLeftovers(): want 6 processes stopped, got %d, %v", stopped, err)
	}
}

// TestUpFailureLeavesNothing: a fleet that cannot come up leaves no processes, reports why, and keeps its folder
// usable.
func TestUpFailureLeavesNothing(t *testing.T) {
	binDir, dir := t.TempDir(), t.TempDir()
	for program, script := range map[string]string{
		Etcd: "echo cannot get anything done; exit 3", APIServer: "exit 0", ControllerManager: "exit 0",
	} {
		if err := os.WriteFile(filepath.Join(binDir, program), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		_, err := Up(t.Context(), Options{Dir: dir, BinDir: binDir, Workloads: []string{"w1"}, Log: t.Output(), StopWithParent: true})
		if err == nil || !strings.Contains(err.Error(), "cannot get anything done") {
			t.Errorf("Up(): want an error with the end of the log, got %v", err)
		}
		checkNoLeftovers(t, dir)
	}
}

// TestUpRefusesForeignFolder: Up removes only what a fleet has left there.
func TestUpRefusesForeignFolder(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, clustersFolder, "precious")
	if err := os.MkdirAll(precious, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Up(t.Context(), Options{Dir: dir, Log: t.Output()}); err == nil {
		t.Error("Up(): want an error for a folder that holds something else")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("Up() must not touch it: %v", err)
	}
}

// pids returns the ids of all processes by cluster and name.
func pids(t *testing.T, dir string) map[string]map[string]int {
	t.Helper()
	f, err := Load(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	names, err := f.Clusters()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]int{}
	for _, name := range names {
		processes, err := f.Processes(name)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = map[string]int{}
		for _, process := range processes {
			found[name][process.Name] = process.PID
		}
	}
	return found
}

func killProcess(t *testing.T, f *Fleet, name, process string) {
	t.Helper()
	c, err := f.openCluster(name)
	if err != nil {
		t.Fatal(err)
	}
	record, found := c.process(process)
	if !found {
		t.Fatalf("cluster %q has no process %q", name, process)
	}
	if err := stopProcess(t.Context(), record.processIdentity, 0); err != nil {
		t.Fatal(err)
	}
}

func checkReady(t *testing.T, dir string) {
	t.Helper()
	f, err := Load(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	statuses, err := f.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range statuses {
		if !status.Ready {
			t.Errorf("cluster %q is not ready: %s", status.Name, status.Reason)
		}
	}
}
