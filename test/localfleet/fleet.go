// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
)

// Fleet is a hub and its workload clusters, running as processes on this machine. All methods may be called at the same
// time. Operations that change one cluster run one after the other, except Add, Pause, Resume and Kill, which do not
// wait for other operations on the cluster. Down waits for all of them.
type Fleet struct {
	layout    layout
	state     *fleetState
	sources   sources
	clock     clock.PassiveClock
	log       *stepLog
	allocator *portAllocator
	spawner   *spawner
}

func newFleet(o Options, state *fleetState) *Fleet {
	c := clock.RealClock{}
	return &Fleet{
		layout: layout{dir: o.Dir}, state: state, clock: c, log: newStepLog(o.Log, c),
		allocator: newPortAllocator(), spawner: newSpawner(o.StopWithParent),
	}
}

// Load returns the fleet that was brought up in dir, to inspect it or to work with it. log may be nil.
func Load(ctx context.Context, dir string, log io.Writer) (*Fleet, error) {
	o, err := Options{Dir: dir, Log: log}.withDefaults()
	if err != nil {
		return nil, err
	}
	state, err := readFleetState(layout{dir: o.Dir})
	if err != nil {
		return nil, err
	}
	// Processes that are started through a loaded fleet keep running when this process ends.
	f := newFleet(o, state)
	if err := f.findSources(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *Fleet) findSources(ctx context.Context) error {
	repository, err := Repository()
	if err != nil {
		return err
	}
	f.sources, err = findSources(ctx, repository, f.state)
	return err
}

// Dir is the folder of the fleet.
func (f *Fleet) Dir() string { return f.layout.dir }

// BinDir is the folder of the programs that the fleet runs; it contains kubectl, too.
func (f *Fleet) BinDir() string { return f.state.BinDir }

// Clusters returns the names of all clusters, the hub first.
func (f *Fleet) Clusters() ([]string, error) { return clusterNames(f.layout) }

// Kubeconfig is the path of the administrator's kubeconfig for a cluster, HubName for the hub.
func (f *Fleet) Kubeconfig(name string) string { return f.layout.kubeconfig(name) }

// AuditLog is the path of a cluster's audit log; it exists when Options.Audit was set.
func (f *Fleet) AuditLog(name string) string { return f.layout.auditLog(name) }

// Log is the path of the log of one process of a cluster.
func (f *Fleet) Log(name, process string) string { return f.layout.log(name, process) }

// Config is the administrator's configuration for a cluster, HubName for the hub. It has no rate limit.
func (f *Fleet) Config(name string) (*rest.Config, error) {
	return restConfigFromFile(f.layout.kubeconfig(name))
}

// UserKubeconfig returns a kubeconfig with a new client certificate for any user and groups. The user has the rights
// that RBAC in the cluster gives to them.
func (f *Fleet) UserKubeconfig(name, user string, groups ...string) ([]byte, error) {
	c, err := f.openCluster(name)
	if err != nil {
		return nil, err
	}
	return c.userKubeconfig(user, groups...)
}

// UserConfig is UserKubeconfig as a configuration, without a rate limit.
func (f *Fleet) UserConfig(name, user string, groups ...string) (*rest.Config, error) {
	kubeconfig, err := f.UserKubeconfig(name, user, groups...)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig of %q for cluster %q: %w", user, name, err)
	}
	config.QPS = -1
	return config, nil
}

// lockCluster opens a cluster for work on it. The returned function ends the work.
func (f *Fleet) lockCluster(ctx context.Context, name string) (*cluster, func(), error) {
	shared, err := lockFolder(ctx, f.layout.dir, false)
	if err != nil {
		return nil, nil, err
	}
	// The state is read before the lock is taken, so that the error says more than that a folder is missing.
	if _, err = readClusterState(f.layout, name); err != nil {
		shared.unlock()
		return nil, nil, err
	}
	exclusive, err := lockFolder(ctx, f.layout.cluster(name), true)
	if err != nil {
		shared.unlock()
		return nil, nil, err
	}
	unlock := func() {
		exclusive.unlock()
		shared.unlock()
	}
	c, err := f.openCluster(name)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return c, unlock, nil
}

// checkOwner refuses to start processes in a fleet that is tied to another process and ends with it.
func (f *Fleet) checkOwner() error {
	owner := f.state.Owner
	if owner != nil && owner.PID != os.Getpid() {
		return fmt.Errorf("the fleet in %s belongs to process %d (%s); only that process can start others in it", f.layout.dir, owner.PID, owner.Executable)
	}
	return nil
}

// Add brings up one more workload cluster and registers it in the hub.
func (f *Fleet) Add(ctx context.Context, name string) error {
	if err := validateWorkloadName(name); err != nil {
		return err
	}
	if err := f.checkOwner(); err != nil {
		return err
	}
	lock, err := lockFolder(ctx, f.layout.dir, false)
	if err != nil {
		return err
	}
	defer lock.unlock()
	// Creating the folder decides which of two callers that add the same name succeeds.
	if err := os.MkdirAll(f.layout.clusters(), 0o700); err != nil {
		return fmt.Errorf("cannot create the folder of cluster %q: %w", name, err)
	}
	if err := os.Mkdir(f.layout.cluster(name), 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("there is a cluster %q already", name)
		}
		return fmt.Errorf("cannot create the folder of cluster %q: %w", name, err)
	}
	if err := f.addWorkload(ctx, name, nil); err != nil {
		return errors.Join(err, f.abandonCluster(context.WithoutCancel(ctx), name))
	}
	return nil
}

// addWorkload starts a workload cluster, waits for hubReady if it is not nil, and registers the cluster.
func (f *Fleet) addWorkload(ctx context.Context, name string, hubReady func(context.Context) error) error {
	c, err := f.startWorkload(ctx, name)
	if err != nil {
		return err
	}
	if hubReady != nil {
		if err := hubReady(ctx); err != nil {
			return err
		}
	}
	if err := f.register(ctx, c, Registration{Workload: name}); err != nil {
		return err
	}
	return c.update(func(state *clusterState) { state.Complete = true })
}

// abandonCluster stops the processes of a cluster that did not come up. Its files stay, with the logs that say why.
func (f *Fleet) abandonCluster(ctx context.Context, name string) error {
	c, err := f.openCluster(name)
	if err != nil {
		return f.layout.removeCluster(name)
	}
	return c.stop(ctx)
}

// Remove deletes a workload cluster from the hub, stops it and removes its files.
func (f *Fleet) Remove(ctx context.Context, name string) error {
	if name == HubName {
		return errors.New("the hub cannot be removed; take the fleet down")
	}
	c, unlock, err := f.lockCluster(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	keys, err := f.registrations(ctx, name)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := f.unregister(ctx, key); err != nil {
			return err
		}
	}
	if err := c.stop(ctx); err != nil {
		return err
	}
	return f.layout.removeCluster(name)
}
