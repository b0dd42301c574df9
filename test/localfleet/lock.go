// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// folderLock is a lock on a folder that the kernel releases when its holder ends, regardless of how it ends. The
// fleet's folder is locked exclusively while the fleet is brought up or taken down, and shared for operations on one
// cluster; a cluster's folder is locked exclusively. Locking the folder instead of a file in it leaves nothing behind
// that would have to be removed.
type folderLock struct{ folder *os.File }

// lockFolder takes the lock, waiting for its holder until ctx ends.
func lockFolder(ctx context.Context, path string, exclusive bool) (*folderLock, error) {
	how := syscall.LOCK_SH | syscall.LOCK_NB
	if exclusive {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	var lock *folderLock
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		folder, err := os.Open(path)
		if err != nil {
			return false, err
		}
		if err := syscall.Flock(int(folder.Fd()), how); err != nil {
			_ = folder.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
				return false, nil
			}
			return false, err
		}
		// The former holder may have removed the folder, and it may have been created again.
		if !isFolderAt(folder, path) {
			_ = folder.Close()
			return false, nil
		}
		lock = &folderLock{folder: folder}
		return true, nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("cannot lock %s, another localfleet is at work there: %w", path, err)
		}
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return lock, nil
}

func isFolderAt(folder *os.File, path string) bool {
	held, err := folder.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(path)
	return err == nil && os.SameFile(held, found)
}

func (l *folderLock) unlock() { _ = l.folder.Close() }
