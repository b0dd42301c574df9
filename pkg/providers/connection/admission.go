// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// admission shares out the workers, so that clusters that cost a time-out each do not hold all of them.
//
// A cluster whose last contact failed is a suspect: suspects together may hold a quarter of the workers, and one that finds
// no room comes back later, which costs nothing. A cluster that has not failed yet is not limited before it has answered, and
// then by the number of connections that are built at once, which is what a hub with a thousand clusters needs when it starts.
type admission struct {
	suspects *semaphore.Weighted
	building *semaphore.Weighted
}

func newAdmission(workers int) *admission {
	return &admission{
		suspects: semaphore.NewWeighted(int64(max(1, workers/4))),
		building: semaphore.NewWeighted(int64(max(1, workers/2))),
	}
}

// enter asks for room to talk to a cluster; the answer comes at once.
func (a *admission) enter(suspect bool) (leave func(), ok bool) {
	if !suspect {
		return func() {}, true
	}
	if !a.suspects.TryAcquire(1) {
		return nil, false
	}
	return func() { a.suspects.Release(1) }, true
}

// build waits for room to build a connection. The cluster has just answered.
func (a *admission) build(ctx context.Context) (leave func(), err error) {
	if err := a.building.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { a.building.Release(1) }, nil
}
