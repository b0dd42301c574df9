// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Down stops all processes of the fleet and removes its files, or keeps them when Options.KeepData was set. The fleet
// cannot be used after that.
func (f *Fleet) Down(ctx context.Context) error {
	lock, err := lockFolder(ctx, f.layout.dir, true)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil // taken down already
		}
		return err
	}
	defer lock.unlock()
	if err := f.stopAll(ctx); err != nil {
		return err
	}
	f.spawner.close()
	if f.state.KeepData {
		if err := f.disown(); err != nil {
			return err
		}
		f.logf("Stopped the fleet; its data and logs stay in %s", f.layout.dir)
		return nil
	}
	if err := f.removeFiles(); err != nil {
		return err
	}
	// The folder is removed only if it is empty, because people keep other things in it.
	_ = os.Remove(f.layout.dir)
	f.logf("Stopped the fleet and removed its files from %s", f.layout.dir)
	return nil
}

// StopLeftovers stops processes of a fleet in dir whose files were removed while it ran. It returns their number.
func StopLeftovers(ctx context.Context, dir string) (int, error) {
	o, err := Options{Dir: dir}.withDefaults()
	if err != nil {
		return 0, err
	}
	found, err := leftovers(o.Dir)
	if err != nil {
		return 0, err
	}
	return len(found), stopProcesses(ctx, found, 0)
}

// stopAll stops all clusters in their proper order, and then all processes that are in no state file.
func (f *Fleet) stopAll(ctx context.Context) error {
	names, err := f.Clusters()
	if err != nil {
		return err
	}
	var steps []func(context.Context) error
	for _, name := range names {
		c, err := f.openCluster(name)
		if err != nil {
			f.logf("%s: %v", name, err)
			continue // its processes are found as leftovers
		}
		steps = append(steps, c.stop)
	}
	if err := inParallel(ctx, steps...); err != nil {
		return err
	}
	return f.stopLeftovers(ctx)
}

// stopLeftovers kills every process of a fleet in this folder. The processes get no grace period, because no fleet uses
// their data again.
func (f *Fleet) stopLeftovers(ctx context.Context) error {
	found, err := leftovers(f.layout.dir)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		f.logf("Stopping %d processes of an earlier fleet in %s", len(found), f.layout.dir)
	}
	return stopProcesses(ctx, found, 0)
}

// removeFiles removes what a fleet keeps in its folder and nothing else. The file that marks the folder as a fleet's is
// removed last, so that an interrupted removal can be resumed.
func (f *Fleet) removeFiles() error {
	names, err := f.Clusters()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := f.layout.removeKubeconfig(name); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(f.layout.clusters()); err != nil {
		return fmt.Errorf("cannot remove the files of the fleet: %w", err)
	}
	if err := os.Remove(f.layout.fleetFile()); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("cannot remove the files of the fleet: %w", err)
	}
	return nil
}
