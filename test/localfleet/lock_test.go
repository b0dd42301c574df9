// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestLockFolder(t *testing.T) {
	cases := map[string]struct {
		reason         string
		first, second  bool
		wantSecondHeld bool
	}{
		"SharedShared":       {reason: "Work on two clusters goes on at the same time.", wantSecondHeld: true},
		"ExclusiveShared":    {reason: "Nothing is done to a cluster while the fleet is brought up or taken down.", first: true},
		"SharedExclusive":    {reason: "The fleet is not taken down while something is done to a cluster.", second: true},
		"ExclusiveExclusive": {reason: "A fleet is brought up by one at a time.", first: true, second: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			first, err := lockFolder(t.Context(), folder, tc.first)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			second, err := lockFolder(ctx, folder, tc.second)
			if (err == nil) != tc.wantSecondHeld {
				t.Errorf("%s\nlockFolder(): want the second lock held %t, got error %v", tc.reason, tc.wantSecondHeld, err)
			}
			if err == nil {
				second.unlock()
			}
			first.unlock()
			third, err := lockFolder(t.Context(), folder, true)
			if err != nil {
				t.Fatalf("%s\nlockFolder(): the lock was not released: %v", tc.reason, err)
			}
			third.unlock()
		})
	}
}

// TestLockFolderRemoved: a caller that waits for a folder that is removed meanwhile must not get a lock on the removed
// one.
func TestLockFolderRemoved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "fleet")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := lockFolder(t.Context(), folder, true)
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		second, err := lockFolder(t.Context(), folder, true)
		if err == nil {
			defer second.unlock()
			if !isFolderAt(second.folder, folder) {
				err = os.ErrNotExist
			}
		}
		result <- err
	}()
	// Another folder replaces it at once, because rename(2) can replace an empty folder.
	if err := os.Mkdir(folder+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Rename(folder+".new", folder); err != nil {
		t.Fatal(err)
	}
	first.unlock()
	if err := <-result; err != nil {
		t.Errorf("lockFolder(): want a lock on the folder that is there now, got %v", err)
	}
}
