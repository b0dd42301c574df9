// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import "time"

const (
	// Resync is how often an import is looked at without a change: the policies are verified again, and Nodes are listed.
	Resync = 5 * time.Minute

	// Retry is how soon an import is looked at again that waits for what nothing tells of.
	Retry = 20 * time.Second
)

// LeftAloneFor is for how long who gave no answer so many times in a row is not asked again: twice as long each time.
func LeftAloneFor(failures int) time.Duration { return min(Resync, Retry<<min(failures-1, 10)) }
