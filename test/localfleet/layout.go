// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"fmt"
	"os"
	"path/filepath"
)

// Names of the file and the folder that a fleet keeps in its folder, next to the administrators' kubeconfigs. Down and
// the clean-up of a stale folder remove these and the kubeconfigs, and nothing else.
const (
	fleetFile      = "fleet.json"
	clustersFolder = "clusters"
)

// layout returns the paths in a fleet's folder.
type layout struct{ dir string }

func (l layout) fleetFile() string            { return filepath.Join(l.dir, fleetFile) }
func (l layout) clusters() string             { return filepath.Join(l.dir, clustersFolder) }
func (l layout) cluster(name string) string   { return filepath.Join(l.clusters(), name) }
func (l layout) stateFile(name string) string { return filepath.Join(l.cluster(name), "state.json") }
func (l layout) pki(name string) string       { return filepath.Join(l.cluster(name), "pki") }
func (l layout) logs(name string) string      { return filepath.Join(l.cluster(name), "logs") }
func (l layout) log(name, process string) string {
	return filepath.Join(l.logs(name), process+".log")
}
func (l layout) auditLog(name string) string { return filepath.Join(l.logs(name), "audit.log") }
func (l layout) data(name, process string) string {
	return filepath.Join(l.cluster(name), "data", process)
}

// kubeconfig is the administrator's kubeconfig, the one for users.
func (l layout) kubeconfig(name string) string {
	return filepath.Join(l.dir, name+".kubeconfig")
}

// componentKubeconfig is the kubeconfig of one of the cluster's own processes.
func (l layout) componentKubeconfig(name, component string) string {
	return filepath.Join(l.pki(name), component+".kubeconfig")
}

func (l layout) createCluster(name string) error {
	for _, folder := range []string{l.pki(name), l.logs(name)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("cannot create the folder of cluster %q: %w", name, err)
		}
	}
	return nil
}

// removeCluster removes all files of one cluster.
func (l layout) removeCluster(name string) error {
	if err := os.RemoveAll(l.cluster(name)); err != nil {
		return fmt.Errorf("cannot remove the files of cluster %q: %w", name, err)
	}
	return l.removeKubeconfig(name)
}

func (l layout) removeKubeconfig(name string) error {
	if err := os.Remove(l.kubeconfig(name)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("cannot remove the kubeconfig of cluster %q: %w", name, err)
	}
	return nil
}

// writeFile writes a file that is either complete or absent: no reader finds a partial file at path, not even after a
// crash.
func writeFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	_, err = temporary.Write(data)
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
