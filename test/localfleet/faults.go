// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Pause stops the API server process of a cluster (SIGSTOP): its port accepts connections, but they never get an
// answer.
func (f *Fleet) Pause(ctx context.Context, name string) error {
	return f.signalAPIServer(ctx, name, syscall.SIGSTOP, statePaused)
}

// Resume continues the API server process of a cluster that was paused.
func (f *Fleet) Resume(ctx context.Context, name string) error {
	return f.signalAPIServer(ctx, name, syscall.SIGCONT, stateRunning)
}

// Kill ends the API server process of a cluster at once (SIGKILL): its port refuses connections. Restart starts it
// again.
func (f *Fleet) Kill(ctx context.Context, name string) error {
	return f.signalAPIServer(ctx, name, syscall.SIGKILL, stateExited)
}

// signalAPIServer sends the signal and returns when the process is in the state that the signal leads to. It does not
// wait for other work on the cluster, which may itself be waiting for a paused API server.
func (f *Fleet) signalAPIServer(ctx context.Context, name string, signal os.Signal, want processState) error {
	lock, err := lockFolder(ctx, f.layout.dir, false)
	if err != nil {
		return err
	}
	defer lock.unlock()
	c, err := f.openCluster(name)
	if err != nil {
		return err
	}
	record, found := c.process(APIServer)
	if !found || !record.alive() {
		if want == stateExited {
			return nil
		}
		return fmt.Errorf("the API server of cluster %q does not run", name)
	}
	if err = record.signal(signal); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, readyInterval/10, killGrace, true, func(context.Context) (bool, error) {
		return record.state() == want, nil
	})
	if err != nil {
		return fmt.Errorf("the API server of cluster %q is %s, not %s: %w", name, record.state(), want, err)
	}
	return nil
}
