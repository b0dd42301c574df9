// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Up brings a fleet up and returns when all of it is ready. If a complete fleet runs in the folder already, Up only
// adds the workload clusters that are missing, replaces those that have died, and applies the manifests of the options
// to the hub and to the other workload clusters that the options name. The remains of a fleet that is not complete,
// because it crashed or the machine was restarted, are stopped and removed first.
//
// On an error, no process runs that did not run before, except those of clusters that Up has added to a running fleet
// and that came up. The logs stay in the folder.
func Up(ctx context.Context, o Options) (*Fleet, error) {
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("cannot create the folder of the fleet: %w", err)
		}
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(ctx, o.Dir, true)
	if errors.Is(err, os.ErrNotExist) && ctx.Err() == nil {
		// The fleet that existed was just taken down, and its folder was removed with it.
		return Up(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	defer lock.unlock()

	state, err := newFleetState(o)
	if err != nil {
		return nil, err
	}
	f := newFleet(o, state)
	if err := f.up(ctx, o); err != nil {
		f.spawner.close()
		return nil, err
	}
	return f, nil
}

func (f *Fleet) up(ctx context.Context, o Options) error {
	if err := f.findSources(ctx); err != nil {
		return err
	}
	running, err := f.adopt(ctx)
	if err != nil {
		return err
	}
	if running {
		return f.extend(ctx, o)
	}
	if err := f.create(ctx, o); err != nil {
		// The processes must be stopped even if the context has ended.
		return errors.Join(err, f.stopAll(context.WithoutCancel(ctx)), f.disown())
	}
	return nil
}

// disown marks the folder as one with remains that the next Up may remove.
func (f *Fleet) disown() error {
	f.state.Owner, f.state.Complete = nil, false
	return writeJSON(f.layout.fleetFile(), f.state)
}

func newFleetState(o Options) (*fleetState, error) {
	repository, err := Repository()
	if err != nil {
		return nil, err
	}
	needed := []string{Etcd, APIServer, ControllerManager}
	if o.WithKwok {
		needed = append(needed, Kwok)
	}
	if o.WithCrossplane {
		needed = append(needed, Crossplane, Function)
	}
	if o.WithClusterAPI {
		needed = append(needed, ClusterAPI)
	}
	binDir, err := findBinDir(o.BinDir, repository, needed)
	if err != nil {
		return nil, err
	}
	state := &fleetState{
		Version: stateVersion, BinDir: binDir, Namespace: o.Namespace, WorkloadRBAC: o.WorkloadRBAC,
		WithCrossplane: o.WithCrossplane, WithClusterAPI: o.WithClusterAPI, WithKwok: o.WithKwok,
		Audit: o.Audit, Fast: o.Fast, KeepData: o.KeepData,
	}
	if o.StopWithParent {
		owner, err := identify(os.Getpid())
		if err != nil {
			return nil, err
		}
		state.Owner = &owner
	}
	return state, nil
}

// adopt checks what the folder holds. If it holds a running fleet, adopt takes over the state of that fleet and returns
// true. Otherwise, when adopt returns, the folder is empty and no process of an earlier fleet in it is left.
func (f *Fleet) adopt(ctx context.Context) (bool, error) {
	old, err := readFleetState(f.layout)
	if errors.Is(err, ErrNoFleet) {
		if _, statErr := os.Stat(f.layout.clusters()); statErr == nil {
			return false, fmt.Errorf("%s exists, but not %s: this is no folder of a fleet, choose another", f.layout.clusters(), fleetFile)
		}
		return false, f.stopLeftovers(ctx)
	}
	if err != nil {
		return false, err
	}
	if old.Owner != nil && old.Owner.alive() {
		return false, fmt.Errorf("the fleet in %s belongs to process %d (%s), which is running", f.layout.dir, old.Owner.PID, old.Owner.Executable)
	}
	problem := f.hubProblem(old)
	if problem == "" {
		if f.state.Owner != nil {
			return false, fmt.Errorf("a fleet without an owner runs in %s; take it down first", f.layout.dir)
		}
		if old.WithCrossplane != f.state.WithCrossplane || old.WithClusterAPI != f.state.WithClusterAPI || old.WithKwok != f.state.WithKwok {
			return false, fmt.Errorf("a fleet with other parts runs in %s; take it down first", f.layout.dir)
		}
		f.state = old
		return true, nil
	}
	f.logf("There are remains of a fleet in %s (%s): removing them", f.layout.dir, problem)
	if err := f.stopLeftovers(ctx); err != nil {
		return false, err
	}
	return false, f.removeFiles()
}

// hubProblem returns why the fleet in the folder cannot be used, or "" if it can.
func (f *Fleet) hubProblem(old *fleetState) string {
	if !old.Complete {
		return "it never came up completely"
	}
	hub, err := f.openCluster(HubName)
	if err != nil {
		return err.Error()
	}
	if ended := hub.endedProcess(); ended != "" {
		return fmt.Sprintf("%s of the hub does not run", ended)
	}
	return ""
}

// create brings the whole fleet up, all clusters at the same time.
func (f *Fleet) create(ctx context.Context, o Options) error {
	if err := writeJSON(f.layout.fleetFile(), f.state); err != nil {
		return err
	}
	f.logf("Starting the hub and %d workload clusters (%s) in %s", len(o.Workloads), strings.Join(o.Workloads, ", "), f.layout.dir)
	hubReady := make(chan struct{})
	waitForHub := func(ctx context.Context) error {
		select {
		case <-hubReady:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	steps := []func(context.Context) error{func(ctx context.Context) error {
		if err := f.startHub(ctx, o.HubManifests); err != nil {
			return err
		}
		f.logf("%s: ready", HubName)
		close(hubReady)
		return nil
	}}
	for _, name := range o.Workloads {
		steps = append(steps, func(ctx context.Context) error { return f.addWorkload(ctx, name, waitForHub) })
	}
	if err := inParallel(ctx, steps...); err != nil {
		return err
	}
	f.state.Complete = true
	return writeJSON(f.layout.fleetFile(), f.state)
}

// extend adds the workload clusters that a running fleet lacks, replaces those that have died, and applies the
// manifests of the options to the hub and to the other workload clusters that the options name.
func (f *Fleet) extend(ctx context.Context, o Options) error {
	existing, err := f.Clusters()
	if err != nil {
		return err
	}
	f.logf("The fleet in %s runs already: %s", f.layout.dir, strings.Join(existing, ", "))
	f.state.WorkloadRBAC = o.WorkloadRBAC
	if err := writeJSON(f.layout.fleetFile(), f.state); err != nil {
		return err
	}
	if err := f.applyTo(ctx, HubName, o.HubManifests); err != nil {
		return err
	}
	var steps []func(context.Context) error
	for _, name := range o.Workloads {
		if slices.Contains(existing, name) {
			problem := f.workloadProblem(name)
			if problem == "" {
				steps = append(steps, func(ctx context.Context) error { return f.applyTo(ctx, name, o.WorkloadRBAC) })
				continue
			}
			f.logf("%s: %s: replacing the cluster by a new one", name, problem)
		} else {
			f.logf("%s: adding it", name)
		}
		steps = append(steps, func(ctx context.Context) error { return f.replaceWorkload(ctx, name) })
	}
	return inParallel(ctx, steps...)
}

// applyTo applies manifests to a running cluster.
func (f *Fleet) applyTo(ctx context.Context, name string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	config, err := f.Config(name)
	if err != nil {
		return err
	}
	return Apply(ctx, config, paths...)
}

func (f *Fleet) workloadProblem(name string) string {
	c, err := f.openCluster(name)
	if err != nil {
		return err.Error()
	}
	if !c.state.Complete {
		return "it never came up completely"
	}
	if ended := c.endedProcess(); ended != "" {
		return ended + " does not run"
	}
	return ""
}

// replaceWorkload starts a workload cluster from scratch, regardless of what exists of it.
func (f *Fleet) replaceWorkload(ctx context.Context, name string) error {
	keys, err := f.registrations(ctx, name)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := f.unregister(ctx, key); err != nil {
			return err
		}
	}
	if err := f.abandonCluster(ctx, name); err != nil {
		return err
	}
	if err := f.layout.removeCluster(name); err != nil {
		return err
	}
	if err := f.addWorkload(ctx, name, nil); err != nil {
		return errors.Join(err, f.abandonCluster(context.WithoutCancel(ctx), name))
	}
	return nil
}
