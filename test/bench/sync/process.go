// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program that ends with this one.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

func startProcess(logPath, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of %s: %w", program, err)
	}
	defer func() { _ = log.Close() }()
	p := &process{cmd: exec.Command(program, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread ends that started the process, not when the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", program, err)
	}
	return p, nil
}

func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill %s: %w", p.cmd.Path, err)
	}
	<-p.exited
	return nil
}

// usage is what processes have taken of the machine.
type usage struct {
	processor time.Duration
	// resident is the memory that they occupy, peak the most that each of them ever occupied, summed up.
	resident, peak int64
}

// usageOf sums up what processes have taken.
func usageOf(pids []int) (usage, error) {
	var sum usage
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return usage{}, fmt.Errorf("cannot see what a process takes; has it ended? %w", err)
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return usage{}, fmt.Errorf("cannot see what a process takes; has it ended? %w", err)
		}
		u, err := parseUsage(string(status), string(stat))
		if err != nil {
			return usage{}, fmt.Errorf("cannot see what process %d takes: %w", pid, err)
		}
		sum.processor += u.processor
		sum.resident += u.resident
		sum.peak += u.peak
	}
	return sum, nil
}

// tick is the unit in which Linux tells processor time, whatever its own clock does.
const tick = 10 * time.Millisecond

// parseUsage reads /proc/PID/status and /proc/PID/stat.
func parseUsage(status, stat string) (usage, error) {
	var u usage
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		into := map[string]*int64{"VmRSS": &u.resident, "VmHWM": &u.peak}[name]
		if into == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("cannot read %s: %w", name, err)
		}
		*into = kib << 10
	}
	if u.peak == 0 {
		return usage{}, errors.New("the kernel does not say how much memory it has")
	}
	// The name of the program, in parentheses, can hold anything; what follows it begins with field 3.
	_, rest, ok := strings.Cut(stat[strings.LastIndexByte(stat, ')')+1:], " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return usage{}, errors.New("the kernel does not say how much processor time it has taken")
	}
	for _, field := range fields[11:13] { // utime and stime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("cannot read the processor time: %w", err)
		}
		u.processor += time.Duration(ticks) * tick
	}
	return u, nil
}
