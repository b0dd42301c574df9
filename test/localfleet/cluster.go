// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// cluster is one control plane of the fleet: the hub or a workload cluster. Its state is that of the state file, which
// is read when the cluster is opened and written with every change.
type cluster struct {
	fleet *Fleet
	name  string

	mu    sync.Mutex
	state clusterState
}

// newCluster prepares the files of a cluster that does not exist yet.
func (f *Fleet) newCluster(name string) (*cluster, error) {
	c := &cluster{fleet: f, name: name, state: clusterState{Name: name, Ports: map[string]int{}}}
	if err := f.layout.createCluster(name); err != nil {
		return nil, err
	}
	if err := createPKI(f.layout.pki(name), name, f.clock); err != nil {
		return nil, err
	}
	return c, c.update(func(*clusterState) {})
}

// openCluster reads a cluster that exists.
func (f *Fleet) openCluster(name string) (*cluster, error) {
	state, err := readClusterState(f.layout, name)
	if err != nil {
		return nil, err
	}
	return &cluster{fleet: f, name: name, state: *state}, nil
}

func (c *cluster) isHub() bool { return c.name == HubName }

// update changes the state and writes it.
func (c *cluster) update(change func(*clusterState)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.state)
	return writeJSON(c.fleet.layout.stateFile(c.name), &c.state)
}

func (c *cluster) ports() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.state.Ports)
}

func (c *cluster) process(name string) (processRecord, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.process(name)
}

func (c *cluster) processes() []processRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.state.Processes)
}

// choosePorts assigns a port to each name that has none and returns these names.
func (c *cluster) choosePorts(names []string) ([]string, error) {
	var chosen []string
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if c.state.Ports[name] != 0 {
			continue
		}
		port, err := c.fleet.allocator.take()
		if err != nil {
			return nil, err
		}
		c.state.Ports[name] = port
		chosen = append(chosen, name)
	}
	return chosen, nil
}

func (c *cluster) forgetPorts(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		delete(c.state.Ports, name)
	}
}

// endpoint is the current endpoint of the cluster's API server.
func (c *cluster) endpoint() (endpoint, error) {
	pair, err := readKeyPair(c.fleet.layout.pki(c.name), authorityName)
	if err != nil {
		return endpoint{}, err
	}
	return endpoint{server: apiServerURL(c.ports()[portAPIServer]), ca: pair.certificate}, nil
}

// userKubeconfig issues a client certificate for a user and returns a kubeconfig with it.
func (c *cluster) userKubeconfig(user string, groups ...string) ([]byte, error) {
	ca, err := loadAuthority(c.fleet.layout.pki(c.name), authorityName, c.fleet.clock)
	if err != nil {
		return nil, err
	}
	pair, err := ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	e, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	return certificateKubeconfig(c.name, user, e, pair)
}

// writeComponentKubeconfig writes the kubeconfig of one of the cluster's own processes and returns its path.
func (c *cluster) writeComponentKubeconfig(component, user string, groups ...string) (string, error) {
	data, err := c.userKubeconfig(user, groups...)
	if err != nil {
		return "", err
	}
	path := c.fleet.layout.componentKubeconfig(c.name, component)
	return path, writeFile(path, data)
}

func (c *cluster) writeAdminKubeconfig() error {
	pair, err := readKeyPair(c.fleet.layout.pki(c.name), adminName)
	if err != nil {
		return err
	}
	e, err := c.endpoint()
	if err != nil {
		return err
	}
	data, err := certificateKubeconfig(c.name, adminName, e, pair)
	if err != nil {
		return err
	}
	return writeFile(c.fleet.layout.kubeconfig(c.name), data)
}

func (c *cluster) adminConfig() (*rest.Config, error) {
	return restConfigFromFile(c.fleet.layout.kubeconfig(c.name))
}

// stop ends all processes of the cluster: first the clients of the API server, then the API server, then etcd, because
// an API server without its etcd takes more than a minute to end.
func (c *cluster) stop(ctx context.Context) error {
	var clients []processIdentity
	for _, record := range c.processes() {
		if !strings.HasPrefix(record.Name, APIServer) && record.Name != Etcd {
			clients = append(clients, record.processIdentity)
		}
	}
	failures := []error{stopProcesses(ctx, clients, stopGrace)}
	for _, name := range []string{previousAPIServer, APIServer, Etcd} {
		if record, found := c.process(name); found {
			failures = append(failures, stopProcess(ctx, record.processIdentity, stopGrace))
		}
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("cannot stop cluster %q: %w", c.name, err)
	}
	return nil
}

// endedProcess returns the first process of the cluster that has ended, or "" when all run.
func (c *cluster) endedProcess() string {
	for _, record := range c.processes() {
		if !record.alive() {
			return record.Name
		}
	}
	return ""
}
