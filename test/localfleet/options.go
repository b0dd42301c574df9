// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
)

// HubName is the name under which the hub's processes are addressed, for example by Pause. No workload cluster can have
// it.
const HubName = "hub"

// DefaultDir is the folder in which cmd/localfleet puts a fleet by default.
const DefaultDir = ".localfleet"

// Options describe the fleet to bring up.
type Options struct {
	// Dir holds all files of the fleet: kubeconfigs, certificates, data, logs. It is created if it does not exist.
	Dir string

	// Workloads are the names of the workload clusters, see WorkloadNames.
	Workloads []string

	// BinDir holds the programs. Empty: the folder that the environment names, else bin/controlplane in the repository.
	BinDir string

	// Log receives one line per step. Nil: nothing is printed.
	Log io.Writer

	// WithCrossplane starts Crossplane core and the composition function in the hub.
	WithCrossplane bool

	// WithClusterAPI starts Cluster API core in the hub. Without it the fleet itself writes the status of the Cluster
	// objects, once, which is enough for tests that only read it.
	WithClusterAPI bool

	// WithKwok starts kwok in every workload cluster, gives it a node and binds every pod to that node, so that pods
	// become Ready.
	WithKwok bool

	// Namespace of the Cluster objects in the hub. Empty: "default".
	Namespace string

	// WorkloadRBAC are YAML files, or folders of them, that are applied to each workload cluster when it is added, and by
	// each later Up that names it. They give the service account masthead-system/masthead its rights. Without them it has
	// none.
	WorkloadRBAC []string

	// HubManifests are YAML files, or folders of them, that are applied to the hub before any cluster is registered.
	HubManifests []string

	// Audit makes every API server write one line per request to AuditLog, at the level Metadata.
	Audit bool

	// Fast gives the API servers and etcd memory, so that they rarely collect garbage. It is for benchmarks, which would
	// otherwise measure how these programs run in as little memory as possible, and for tests that share two cores.
	Fast bool

	// StopWithParent ties the processes to this one: when it ends, regardless of how it ends, the kernel kills them. It is
	// for tests. Without it the fleet keeps running until Down.
	StopWithParent bool

	// KeepData makes Down leave data and logs in Dir, for inspection.
	KeepData bool
}

// WorkloadNames returns the names w1 to wN.
func WorkloadNames(n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, "w"+strconv.Itoa(i+1))
	}
	return names
}

// withDefaults returns complete and valid options, or an error that says what is wrong with them.
func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return Options{}, errors.New("the folder of the fleet is not set")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return Options{}, fmt.Errorf("cannot create the folder %q absolute: %w", o.Dir, err)
	}
	// The folder must have one name, because leftover processes are found by it.
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	o.Dir = dir
	if o.WorkloadRBAC, err = absolutePaths(o.WorkloadRBAC); err != nil {
		return Options{}, err
	}
	if o.HubManifests, err = absolutePaths(o.HubManifests); err != nil {
		return Options{}, err
	}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	for i, name := range o.Workloads {
		if err := validateWorkloadName(name); err != nil {
			return Options{}, err
		}
		if slices.Contains(o.Workloads[:i], name) {
			return Options{}, fmt.Errorf("workload cluster %q is named twice", name)
		}
	}
	return o, nil
}

// validateWorkloadName accepts names that can be a file name, an object name and part of a Secret's name.
func validateWorkloadName(name string) error {
	if name == HubName {
		return fmt.Errorf("a workload cluster cannot be called %q", HubName)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be the name of a workload cluster: %s", name, problems[0])
	}
	return nil
}

// absolutePaths makes paths independent of the folder in which a later command runs.
func absolutePaths(paths []string) ([]string, error) {
	absolute := make([]string, 0, len(paths))
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("cannot create the path %q absolute: %w", path, err)
		}
		absolute = append(absolute, path)
	}
	return absolute, nil
}
