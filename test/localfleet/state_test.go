// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClusterStateProcesses(t *testing.T) {
	record := func(name string, pid int) processRecord {
		return processRecord{Name: name, processIdentity: processIdentity{PID: pid}}
	}
	state := clusterState{}
	state.setProcess(record(Etcd, 1))
	state.setProcess(record(APIServer, 2))
	state.setProcess(record(Etcd, 3))
	if diff := cmp.Diff([]processRecord{record(Etcd, 3), record(APIServer, 2)}, state.Processes, cmp.AllowUnexported(processRecord{})); diff != "" {
		t.Errorf("setProcess(): a process takes the place of its predecessor: -want, +got:\n%s", diff)
	}
	state.removeProcess(Etcd)
	if _, found := state.process(Etcd); found {
		t.Error("removeProcess(): the process is still there")
	}
}

func TestStateFiles(t *testing.T) {
	l := layout{dir: t.TempDir()}
	if err := l.createCluster("w1"); err != nil {
		t.Fatal(err)
	}
	want := clusterState{
		Name: "w1", Ports: map[string]int{portEtcd: 20001}, Complete: true,
		Processes: []processRecord{{Name: Etcd, Log: "etcd.log", processIdentity: processIdentity{PID: 7, StartTime: 8, BootID: "b", Executable: "/etcd"}}},
	}
	if err := writeJSON(l.stateFile("w1"), want); err != nil {
		t.Fatal(err)
	}
	got, err := readClusterState(l, "w1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got, cmp.AllowUnexported(processRecord{})); diff != "" {
		t.Errorf("readClusterState(): -want, +got:\n%s", diff)
	}
	if info, err := os.Stat(l.stateFile("w1")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the state file must be for its owner only: %v, %v", info.Mode(), err)
	}
	if _, err := readClusterState(l, "w2"); err == nil {
		t.Error("readClusterState(): want an error for a cluster that does not exist")
	}
}

func TestFleetStateOfAnotherVersion(t *testing.T) {
	l := layout{dir: t.TempDir()}
	if err := writeJSON(l.fleetFile(), fleetState{Version: stateVersion + 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := readFleetState(l); err == nil {
		t.Error("readFleetState(): want an error for a state file that another version wrote")
	}
}

func TestCompareClusterNames(t *testing.T) {
	got := []string{"w10", "edge", "w2", HubName, "w1", "east-2", "east-10"}
	slices.SortFunc(got, compareClusterNames)
	want := []string{HubName, "east-2", "east-10", "edge", "w1", "w2", "w10"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the hub first, then by name, numbers by value: -want, +got:\n%s", diff)
	}
}
