// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const mebibyte = 1 << 20

const (
	// heapPercent is the heap's share of the container's memory: the rest is for what Go does not count, and for garbage
	// that is not collected yet. At 100 percent the kernel kills the process before Go collects harder.
	heapPercent = 90

	// budgetPart of the heap is for what clusters make the manager hold: cached objects and answers in flight. The rest is
	// for the connections, the hub's own objects, and garbage. The collector lets the heap grow to twice the live size,
	// so that clusters which fill the budget grow the process by about a sixth of its limit, and uncounted memory adds
	// another tenth.
	budgetPart = 12

	// minBudget holds one answer of the largest size. unlimitedBudget is for a process without a memory limit.
	minBudget       = 64 * mebibyte
	unlimitedBudget = 256 * mebibyte
)

// limitMemory makes the runtime keep within heapPercent of the memory that the provider reports, unless the operator
// sets GOMEMLIMIT, and returns the limit in bytes; zero for none.
func limitMemory(container memlimit.Provider) (int64, error) {
	limit, err := memlimit.Set(memlimit.WithProvider(container), memlimit.WithRatio(heapPercent/100.0))
	if limit == math.MaxInt64 {
		limit = 0
	}
	return limit, err
}

// memoryBudget returns the memory that clusters share in a process with a memory limit.
func memoryBudget(limit int64) int64 {
	if limit <= 0 {
		return unlimitedBudget
	}
	return max(minBudget, limit/budgetPart)
}
