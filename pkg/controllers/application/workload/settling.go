// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"
)

// StatusPatience is how long a status keeps the entry of a component that cannot be observed yet. When many clusters
// are listed at once, kinds wait for their turn.
const StatusPatience = 2 * time.Minute

// Settling returns for how long an Application has been waiting for pending observations.
func (w *Cluster) Settling(t *Tracked, waiting bool) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	switch {
	case !waiting:
		t.settlingSince = time.Time{}
		return 0
	case t.settlingSince.IsZero():
		t.settlingSince = now
	}
	since := now.Sub(t.settlingSince)
	if since < StatusPatience {
		// Once it is observed, it is handled at once.
		t.started = time.Time{}
	}
	return since
}
