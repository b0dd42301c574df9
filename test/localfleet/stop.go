// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// stopGrace is how long a process may take to end by itself. An API server that has lost its etcd would take more than
	// a minute, and could not store anything in that time.
	stopGrace = 5 * time.Second
	// killGrace is how long the kernel may take to end a process that was killed.
	killGrace = 30 * time.Second
)

// stopProcess asks a process to end, and kills it after the grace period. A paused process is continued, because
// otherwise it would not handle the request. stopProcess returns when the process has ended.
func stopProcess(ctx context.Context, process processIdentity, grace time.Duration) error {
	if grace > 0 {
		if err := errors.Join(process.signal(syscall.SIGTERM), process.signal(syscall.SIGCONT)); err != nil {
			return err
		}
		if waitExited(ctx, process, grace) == nil {
			return nil
		}
	}
	if err := process.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if err := waitExited(ctx, process, killGrace); err != nil {
		return fmt.Errorf("process %d (%s) was killed and is still there: %w", process.PID, process.Executable, err)
	}
	return nil
}

// stopProcesses ends several processes at the same time.
func stopProcesses(ctx context.Context, processes []processIdentity, grace time.Duration) error {
	var wg sync.WaitGroup
	failures := make([]error, len(processes))
	for i, process := range processes {
		wg.Go(func() { failures[i] = stopProcess(ctx, process, grace) })
	}
	wg.Wait()
	return errors.Join(failures...)
}

func waitExited(ctx context.Context, process processIdentity, limit time.Duration) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		return !process.alive(), nil
	})
}
