// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawner starts processes. If they are to end with this process, it asks the kernel to kill them when their parent
// dies. To the kernel, the parent is the thread that started them, so all are started on one thread that lives as long
// as the spawner.
type spawner struct {
	withParent bool
	requests   chan spawnRequest
	closed     chan struct{}
	closeOnce  sync.Once
}

type spawnRequest struct {
	command *exec.Cmd
	result  chan error
}

var errSpawnerClosed = errors.New("the fleet was taken down")

func newSpawner(withParent bool) *spawner {
	s := &spawner{withParent: withParent, requests: make(chan spawnRequest), closed: make(chan struct{})}
	if withParent {
		go s.run()
	}
	return s
}

func (s *spawner) run() {
	// The thread is not unlocked while there may be children. Otherwise it could be given to another goroutine that locks
	// it and ends, which ends the thread and with it the children.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case request := <-s.requests:
			request.result <- request.command.Start()
		case <-s.closed:
			return
		}
	}
}

// start starts the command and reaps it when it ends.
func (s *spawner) start(command *exec.Cmd) error {
	if err := s.startOnThread(command); err != nil {
		return err
	}
	go func() { _ = command.Wait() }()
	return nil
}

// startOnThread starts the command on the thread that it needs. Its own process group or session keeps an interrupt
// from the terminal away from the process.
func (s *spawner) startOnThread(command *exec.Cmd) error {
	if !s.withParent {
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return command.Start()
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	request := spawnRequest{command: command, result: make(chan error, 1)}
	select {
	case s.requests <- request:
		return <-request.result
	case <-s.closed:
		return errSpawnerClosed
	}
}

// close ends the spawner's thread. All processes must have ended before.
func (s *spawner) close() { s.closeOnce.Do(func() { close(s.closed) }) }
