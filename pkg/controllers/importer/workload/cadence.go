// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import "time"

const (
	// Resync is the interval of passes without a change: the policies are verified again, and Nodes are listed.
	Resync = 5 * time.Minute

	// Retry is the requeue delay of an import that waits for something that is not watched.
	Retry = 20 * time.Second
)

// LeftAloneFor is the delay after so many consecutive failures to get an answer. It doubles each time.
func LeftAloneFor(failures int) time.Duration { return min(Resync, Retry<<min(failures-1, 10)) }
