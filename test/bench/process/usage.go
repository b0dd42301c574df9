// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is the CPU time and the memory that processes have used.
type Usage struct {
	// Processor is the time that they ran.
	Processor time.Duration

	// Resident is the memory that they occupy, Peak the most that each of them ever occupied, summed up.
	Resident, Peak int64
}

// ReadUsage sums up what processes have used.
func ReadUsage(pids ...int) (Usage, error) {
	var sum Usage
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return Usage{}, fmt.Errorf("cannot see what a process takes; has it ended? %w", err)
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return Usage{}, fmt.Errorf("cannot see what a process takes; has it ended? %w", err)
		}
		u, err := parseUsage(string(status), string(stat))
		if err != nil {
			return Usage{}, fmt.Errorf("cannot see what process %d takes: %w", pid, err)
		}
		sum.Processor += u.Processor
		sum.Resident += u.Resident
		sum.Peak += u.Peak
	}
	return sum, nil
}

// tick is the unit in which Linux reports CPU time, regardless of its own clock.
const tick = 10 * time.Millisecond

// parseUsage reads /proc/PID/status and /proc/PID/stat.
func parseUsage(status, stat string) (Usage, error) {
	var u Usage
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		into := map[string]*int64{"VmRSS": &u.Resident, "VmHWM": &u.Peak}[name]
		if into == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("cannot read %s: %w", name, err)
		}
		*into = kib << 10
	}
	if u.Peak == 0 {
		return Usage{}, errors.New("the kernel does not say how much memory it has")
	}
	// The name of the program, in parentheses, can contain any character; the text after it begins with field 3.
	_, rest, ok := strings.Cut(stat[strings.LastIndexByte(stat, ')')+1:], " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return Usage{}, errors.New("the kernel does not say how much processor time it has taken")
	}
	for _, field := range fields[11:13] { // utime and stime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("cannot read the processor time: %w", err)
		}
		u.Processor += time.Duration(ticks) * tick
	}
	return u, nil
}
