// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const mebibyte = 1 << 20

const (
	// heapPercent is the heap's share of the container's memory: the rest is for what Go does not count, and for garbage
	// that is not collected yet. At 100 percent the kernel kills the process before Go collects harder.
	heapPercent = 90

	// budgetPart of the heap is for what clusters make the manager hold: cached objects and answers in flight. The rest is
	// for the connections, the hub's own objects, and garbage. At Go's default, the collector lets the heap grow to twice
	// the live size, so that clusters which fill the budget grow the process by about a sixth of its limit, and uncounted
	// memory adds another tenth. The manager's own setting is lower.
	budgetPart = 12

	// minBudget holds one answer of the largest size. unlimitedBudget is for a process without a memory limit.
	minBudget       = 64 * mebibyte
	unlimitedBudget = 256 * mebibyte
)

// limitMemory makes the runtime keep within heapPercent of the container's memory, unless the operator sets Go's own
// variable, and returns the limit in bytes; zero for none.
func limitMemory(root fs.FS) int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit // GOMEMLIMIT, which the runtime has read.
	}
	limit := cgroupLimit(root) / 100 * heapPercent
	if limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	return limit
}

// budgetOf returns the memory that clusters share in a process with a memory limit.
func budgetOf(limit int64) int64 {
	if limit <= 0 {
		return unlimitedBudget
	}
	return max(minBudget, limit/budgetPart)
}

// cgroupLimit returns the lowest memory limit of the control groups that the process is in, of version 2 or 1; zero for
// none.
func cgroupLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	lowest := int64(0)
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		// hierarchy:controllers:path
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			lowest = lower(lowest, limitUnder(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			lowest = lower(lowest, limitUnder(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return lowest
}

// limitUnder reads the lowest limit of a group and those that it is in. In a container, the path is often that of the
// host, and the file system shows the group itself as the root.
func limitUnder(root fs.FS, mount, group, file string) int64 {
	lowest := int64(0)
	for dir := path.Join(mount, path.Clean("/"+group)); ; dir = path.Dir(dir) {
		if text, err := fs.ReadFile(root, path.Join(dir, file)); err == nil {
			limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && limit > 0 && limit < unlimitedV1 { // Else "max".
				lowest = lower(lowest, limit)
			}
		}
		if dir == mount {
			return lowest
		}
	}
}

// unlimitedV1 is less than what version 1 says when there is no limit, which is about 2^63, and more than any machine
// has.
const unlimitedV1 = 1 << 60

// lower is the lower of two limits, of which zero is none.
func lower(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
