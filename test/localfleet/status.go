// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import "context"

// ClusterStatus is the status of a cluster.
type ClusterStatus struct {
	Name       string
	Server     string // the URL of its API server
	Kubeconfig string // the path of the administrator's kubeconfig
	// Ready: all processes run and the API server reports that it is ready. Otherwise Reason says what is wrong.
	Ready     bool
	Reason    string
	Processes []ProcessStatus
}

// ProcessStatus is the status of a process.
type ProcessStatus struct {
	Name          string
	PID           int
	State         string // running, paused or exited
	ResidentBytes int64
	Log           string
}

// Status returns the status of all clusters, the hub first.
func (f *Fleet) Status(ctx context.Context) ([]ClusterStatus, error) {
	names, err := f.Clusters()
	if err != nil {
		return nil, err
	}
	statuses := make([]ClusterStatus, len(names))
	var steps []func(context.Context) error
	for i, name := range names {
		steps = append(steps, func(ctx context.Context) error {
			c, err := f.openCluster(name)
			if err != nil {
				return err
			}
			statuses[i] = c.status(ctx)
			return nil
		})
	}
	return statuses, inParallel(ctx, steps...)
}

// Processes returns the processes of a cluster, in the order in which they were started.
func (f *Fleet) Processes(name string) ([]ProcessStatus, error) {
	c, err := f.openCluster(name)
	if err != nil {
		return nil, err
	}
	var statuses []ProcessStatus
	for _, record := range c.processes() {
		statuses = append(statuses, ProcessStatus{
			Name: record.Name, PID: record.PID, State: string(record.state()),
			ResidentBytes: record.residentBytes(), Log: record.Log,
		})
	}
	return statuses, nil
}

func (c *cluster) status(ctx context.Context) ClusterStatus {
	status := ClusterStatus{
		Name: c.name, Server: apiServerURL(c.ports()[portAPIServer]), Kubeconfig: c.fleet.layout.kubeconfig(c.name),
	}
	status.Processes, _ = c.fleet.Processes(c.name)
	for _, process := range status.Processes {
		if process.State != string(stateRunning) {
			status.Reason = process.Name + " is " + process.State
			return status
		}
	}
	apiServer, err := c.apiServer()
	if err == nil {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		err = apiServer.ready(attempt, c.ports())
	}
	if err != nil {
		status.Reason = err.Error()
		return status
	}
	status.Ready = true
	return status
}
