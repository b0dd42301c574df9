// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// stateVersion changes when the state of a fleet of an older localfleet can no longer be understood.
const stateVersion = 1

// fleetState is the content of fleet.json: what another process must know to work with the fleet.
type fleetState struct {
	Version        int      `json:"version"`
	BinDir         string   `json:"binDir"`
	Namespace      string   `json:"namespace"`
	WithCrossplane bool     `json:"withCrossplane"`
	WithClusterAPI bool     `json:"withClusterAPI"`
	WithKwok       bool     `json:"withKwok"`
	WorkloadRBAC   []string `json:"workloadRBAC,omitempty"`
	Audit          bool     `json:"audit,omitempty"`
	Fast           bool     `json:"fast,omitempty"`
	KeepData       bool     `json:"keepData,omitempty"`
	// Owner is set while the fleet is tied to a process and ends with it.
	Owner *processIdentity `json:"owner,omitempty"`
	// Complete is set when Up has finished.
	Complete bool `json:"complete"`
}

// clusterState is the content of a cluster's state.json. Each cluster has its own file, so that concurrent work on
// several clusters does not have to share one file.
type clusterState struct {
	Name  string         `json:"name"`
	Ports map[string]int `json:"ports,omitempty"`
	// Processes in the order in which they were started.
	Processes []processRecord `json:"processes,omitempty"`
	// Complete is set when the cluster is fully up.
	Complete bool `json:"complete"`
}

// processRecord is a process that was started for a cluster.
type processRecord struct {
	processIdentity

	Name string `json:"name"`
	Log  string `json:"log"`
}

func (s *clusterState) process(name string) (processRecord, bool) {
	for _, record := range s.Processes {
		if record.Name == name {
			return record, true
		}
	}
	return processRecord{}, false
}

// setProcess adds a process or replaces the one of the same name.
func (s *clusterState) setProcess(record processRecord) {
	for i := range s.Processes {
		if s.Processes[i].Name == record.Name {
			s.Processes[i] = record
			return
		}
	}
	s.Processes = append(s.Processes, record)
}

func (s *clusterState) removeProcess(name string) {
	s.Processes = slices.DeleteFunc(s.Processes, func(r processRecord) bool { return r.Name == name })
}

// ErrNoFleet means that the folder holds no fleet.
var ErrNoFleet = errors.New("there is no fleet")

func readFleetState(l layout) (*fleetState, error) {
	state := &fleetState{}
	if err := readJSON(l.fleetFile(), state); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w in %s", ErrNoFleet, l.dir)
		}
		return nil, err
	}
	if state.Version != stateVersion {
		return nil, fmt.Errorf("the fleet in %s was brought up by another version of localfleet", l.dir)
	}
	return state, nil
}

func readClusterState(l layout, name string) (*clusterState, error) {
	state := &clusterState{}
	if err := readJSON(l.stateFile(name), state); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no cluster %q in the fleet in %s", name, l.dir)
		}
		return nil, err
	}
	if state.Ports == nil {
		state.Ports = map[string]int{}
	}
	return state, nil
}

// clusterNames returns the names of all clusters, the hub first.
func clusterNames(l layout) ([]string, error) {
	entries, err := os.ReadDir(l.clusters())
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot list the clusters in %s: %w", l.dir, err)
	}
	var names []string
	for _, entry := range entries {
		if _, err := os.Stat(l.stateFile(entry.Name())); err == nil {
			names = append(names, entry.Name())
		}
	}
	slices.SortFunc(names, compareClusterNames)
	return names, nil
}

// compareClusterNames sorts the hub first and w2 before w10.
func compareClusterNames(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == HubName:
		return -1
	case b == HubName:
		return 1
	case len(a) != len(b) && strings.TrimRight(a, "0123456789") == strings.TrimRight(b, "0123456789"):
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("cannot parse %s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", path, err)
	}
	return writeFile(path, append(data, '\n'))
}
