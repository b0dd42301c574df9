// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// processIdentity identifies one process permanently. A process id alone does not, because the kernel reuses it.
type processIdentity struct {
	PID        int    `json:"pid"`
	StartTime  uint64 `json:"startTime"` // clock ticks since the machine started
	BootID     string `json:"bootID"`
	Executable string `json:"executable"`
}

// processState is the state of a process as the kernel reports it.
type processState string

// States of a process.
const (
	stateRunning processState = "running"
	statePaused  processState = "paused"
	stateExited  processState = "exited"
)

// procStat holds the needed fields of /proc/<pid>/stat.
type procStat struct {
	state     byte
	threads   uint64
	startTime uint64
}

// hasEnded reports whether all threads of the process have ended. The first can be a zombie while others still end, and
// only the last closes the process's sockets.
func (s procStat) hasEnded() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

// identify returns the identity of a running process.
func identify(pid int) (processIdentity, error) {
	stat, err := readProcStat(pid)
	if err != nil {
		return processIdentity{}, err
	}
	executable, err := os.Readlink(procPath(pid, "exe"))
	if err != nil {
		return processIdentity{}, fmt.Errorf("cannot tell which program process %d runs: %w", pid, err)
	}
	bootID, err := readBootID()
	if err != nil {
		return processIdentity{}, err
	}
	return processIdentity{PID: pid, StartTime: stat.startTime, BootID: bootID, Executable: cleanExecutable(executable)}, nil
}

// state returns the state of the process. A process is exited if its id is free or belongs to another process by now,
// or if it is a zombie: in a container whose first process does not reap its children, dead processes stay visible
// forever.
func (p processIdentity) state() processState {
	if p.PID <= 0 {
		return stateExited
	}
	stat, err := readProcStat(p.PID)
	if err != nil || stat.startTime != p.StartTime || stat.hasEnded() {
		return stateExited
	}
	// A process that is ending has no executable any more.
	executable, err := os.Readlink(procPath(p.PID, "exe"))
	if err == nil && cleanExecutable(executable) != p.Executable {
		return stateExited
	}
	if bootID, err := readBootID(); err != nil || bootID != p.BootID {
		return stateExited
	}
	if stat.state == 'T' || stat.state == 't' {
		return statePaused
	}
	return stateRunning
}

func (p processIdentity) alive() bool { return p.state() != stateExited }

// handle returns a handle that always refers to this process: os.FindProcess pins the process with the id by a pidfd,
// and only then handle checks that this is the right process.
func (p processIdentity) handle() (*os.Process, bool) {
	process, err := os.FindProcess(p.PID)
	if err != nil {
		return nil, false
	}
	if !p.alive() {
		_ = process.Release()
		return nil, false
	}
	return process, true
}

// signal sends a signal. It is not an error if the process has ended.
func (p processIdentity) signal(signal os.Signal) error {
	process, found := p.handle()
	if !found {
		return nil
	}
	defer func() { _ = process.Release() }()
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot send %s to process %d: %w", signal, p.PID, err)
	}
	return nil
}

// residentBytes is the resident memory of the process, or zero if it has ended.
func (p processIdentity) residentBytes() int64 {
	if !p.alive() {
		return 0
	}
	content, err := os.ReadFile(procPath(p.PID, "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(content))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

func readProcStat(pid int) (procStat, error) {
	content, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return procStat{}, fmt.Errorf("cannot read the state of process %d: %w", pid, err)
	}
	stat, err := parseProcStat(string(content))
	if err != nil {
		return procStat{}, fmt.Errorf("cannot read the state of process %d: %w", pid, err)
	}
	return stat, nil
}

// parseProcStat parses /proc/<pid>/stat. The second field is the program's name in parentheses, which may itself
// contain blanks and parentheses, so fields are counted after the last parenthesis. See proc(5).
func parseProcStat(content string) (procStat, error) {
	const threadsField, startTimeField = 20 - 3, 22 - 3 // the first field after the name is the third
	end := strings.LastIndexByte(content, ')')
	if end < 0 {
		return procStat{}, errors.New("no program name")
	}
	fields := strings.Fields(content[end+1:])
	if len(fields) <= startTimeField {
		return procStat{}, errors.New("too few fields")
	}
	startTime, err := strconv.ParseUint(fields[startTimeField], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("start time: %w", err)
	}
	threads, err := strconv.ParseUint(fields[threadsField], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("number of threads: %w", err)
	}
	return procStat{state: fields[0][0], threads: threads, startTime: startTime}, nil
}

func readBootID() (string, error) {
	content, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("cannot read the machine's boot id: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// cleanExecutable removes what the kernel adds when the file of a running program was replaced, for example by a build.
func cleanExecutable(path string) string { return strings.TrimSuffix(path, " (deleted)") }

func procPath(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }
