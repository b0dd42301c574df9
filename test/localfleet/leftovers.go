// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// environmentMarker is set to the fleet's folder in the environment of every process of a fleet. It serves to find the
// processes that are in no state file because localfleet was killed between starting them and writing it.
const environmentMarker = "MASTHEAD_LOCALFLEET_DIR"

// leftovers returns all running processes of the fleet in dir. Only programs that a fleet starts are considered: a
// shell in whose environment the marker happens to be is left alone.
func leftovers(dir string) ([]processIdentity, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes: %w", err)
	}
	var found []processIdentity
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || !isMarked(pid, dir) {
			continue
		}
		identity, err := identify(pid)
		if err != nil || !slices.Contains(programs, filepath.Base(identity.Executable)) || !identity.alive() {
			continue
		}
		found = append(found, identity)
	}
	return found, nil
}

func isMarked(pid int, dir string) bool {
	environment, err := os.ReadFile(procPath(pid, "environ"))
	if err != nil {
		return false // it has ended, or belongs to another user
	}
	marker := []byte(environmentMarker + "=" + dir)
	return slices.ContainsFunc(bytes.Split(environment, []byte{0}), func(variable []byte) bool {
		return bytes.Equal(variable, marker)
	})
}
