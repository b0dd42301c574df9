// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scriptedCluster is a cluster whose only program is a shell script.
func scriptedCluster(t *testing.T, script string) *cluster {
	t.Helper()
	binDir := t.TempDir()
	if err := os.WriteFile(filepath.Join(binDir, Etcd), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	f := newFleet(Options{Dir: t.TempDir(), Log: t.Output(), StopWithParent: true}, &fleetState{BinDir: binDir})
	c, err := f.newCluster("w1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := c.stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		f.spawner.close()
	})
	return c
}

func portArgument(ports map[string]int) []string { return []string{fmt.Sprint(ports[portEtcd])} }

func TestStartServerTriesAnotherPort(t *testing.T) {
	// The program reports that the first two ports that it is given are in use by another program.
	c := scriptedCluster(t, `
echo "$1" >> ports
if [ $(wc -l < ports) -le 2 ]; then echo "listen tcp 127.0.0.1:$1: bind: address already in use"; exit 1; fi
echo up; while :; do sleep 0.1; done`)
	ready := func(_ context.Context, ports map[string]int) error {
		log, err := os.ReadFile(c.fleet.layout.log(c.name, Etcd))
		if err != nil || !strings.Contains(string(log), "up") {
			return fmt.Errorf("not up on port %d (%w)", ports[portEtcd], err)
		}
		return nil
	}
	if err := c.startServer(t.Context(), server{program: Etcd, ports: []string{portEtcd}, arguments: portArgument, ready: ready}); err != nil {
		t.Fatal(err)
	}
	tried, err := os.ReadFile(filepath.Join(c.fleet.layout.cluster(c.name), "ports"))
	if err != nil {
		t.Fatal(err)
	}
	ports := strings.Fields(string(tried))
	if len(ports) != 3 || ports[0] == ports[1] || ports[1] == ports[2] || ports[0] == ports[2] {
		t.Errorf("want three different ports tried, got %v", ports)
	}
	// Another process finds the port on which the program listens in the end.
	reopened, err := c.fleet.openCluster(c.name)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(reopened.ports()[portEtcd]); got != ports[2] {
		t.Errorf("want port %s in the state file, got %s", ports[2], got)
	}
}

func TestStartServerKeepsFixedPort(t *testing.T) {
	c := scriptedCluster(t, `echo "$1" >> ports; echo "bind: address already in use"; exit 1`)
	if err := c.update(func(state *clusterState) { state.Ports[portEtcd] = 20001 }); err != nil {
		t.Fatal(err)
	}
	never := func(context.Context, map[string]int) error { return errors.New("no answer") }
	err := c.startServer(t.Context(), server{program: Etcd, ports: []string{portEtcd}, arguments: portArgument, ready: never})
	if !errors.Is(err, errAddressInUse) {
		t.Errorf("startServer(): a port that others know already is not changed: want %v, got %v", errAddressInUse, err)
	}
}

func TestStartServerErrors(t *testing.T) {
	never := func(context.Context, map[string]int) error { return errors.New("no answer yet") }
	cases := map[string]struct {
		reason string
		script string
		want   []string
	}{
		"Dies": {
			reason: "The error of a process that ends names it and shows the end of its log.",
			script: "echo 'unknown flag: --foo' >&2; exit 2",
			want:   []string{`etcd of cluster "w1"`, "unknown flag: --foo"},
		},
		"Silent": {
			reason: "A process that says nothing is named nevertheless.",
			script: "exit 1",
			want:   []string{`etcd of cluster "w1"`, "is empty"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := scriptedCluster(t, tc.script)
			err := c.startServer(t.Context(), server{program: Etcd, arguments: portArgument, ready: never})
			if err == nil {
				t.Fatalf("%s\nstartServer(): want an error", tc.reason)
			}
			for _, text := range tc.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%s\nstartServer(): want an error with %q, got: %v", tc.reason, text, err)
				}
			}
		})
	}
}

func TestStartServerMissingProgram(t *testing.T) {
	c := scriptedCluster(t, "exit 0")
	err := c.startServer(t.Context(), server{program: "nothing", arguments: portArgument})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("startServer(): want %v, got %v", os.ErrNotExist, err)
	}
}
