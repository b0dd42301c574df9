// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// lifetimeEnv is set to the process ID of the tests, in the environment of all processes that they start after
// endWithTests.
const lifetimeEnv = "MASTHEAD_TESTENV_OF"

// watcher ends the processes that have the variable $1 in their environment, when its input ends. Of etcd and of an
// API server it also removes the folder that envtest has created for it.
const watcher = `cat >/dev/null
for environ in $(grep -lzx "$1" /proc/[0-9]*/environ 2>/dev/null); do
	process=${environ%/environ}
	folder=$(tr '\0' '\n' <"$process/cmdline" | sed -n -E 's/^--(data|cert)-dir=(.*\/k8s_test_framework_[0-9]+)$/\2/p')
	kill -KILL "${process#/proc/}"
	[ -z "$folder" ] || rm -rf "$folder"
done 2>/dev/null`

// endWithTests ensures that API servers and etcd do not outlive the tests, regardless of how those end: envtest starts
// them in process groups of their own, which an interrupt does not reach, and a test that panics or runs into the limit
// of go test stops nothing. The kernel could do it (PR_SET_PDEATHSIG), but it takes the thread that started a process
// for its parent, which envtest does not choose. So a shell waits for the end of a pipe that only this process holds.
// Without /proc, it ends nothing.
func endWithTests() error {
	of := strconv.Itoa(os.Getpid())
	if os.Getenv(lifetimeEnv) == of {
		return nil
	}
	cmd := exec.Command("/bin/sh", "-c", watcher, "sh", lifetimeEnv+"="+of)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("cannot create a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start a shell: %w", err)
	}
	go func() {
		_ = cmd.Wait()
		_ = input.Close() // This reference keeps the garbage collector from closing it earlier.
	}()
	if err := os.Setenv(lifetimeEnv, of); err != nil {
		return fmt.Errorf("cannot set %s: %w", lifetimeEnv, err)
	}
	return nil
}
