// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import "time"

const (
	// Resync is the interval of passes without a change: the policies are verified again, and Nodes are listed.
	Resync = 5 * time.Minute

	// Retry is the requeue delay of an import that waits for something that is not watched.
	Retry = 20 * time.Second
)

// LeftAloneFor is the delay after so many consecutive failures to get an answer. It doubles each time.
func LeftAloneFor(failures int) time.Duration { return min(Resync, Retry<<min(failures-1, 10)) }

// Outcome is what became of the last attempt to write a reflection as it was observed, unless it is there as written.
type Outcome struct {
	// Full is the hash of the whole object.
	Full string
	// Refusal has the hub's words. Empty means that it was written, and changed by others.
	Refusal string
	// Fields are those that the hub refuses; none means all that the object does not need.
	Fields []string
	// Left means that the hub refuses the object without them, too.
	Left bool
	// times is how often in a row it was attempted, and until when the next attempt waits.
	times int
	until time.Time
}

// Waits reports whether the next attempt is not due, and for how long.
func (o Outcome) Waits(now time.Time) (time.Duration, bool) {
	return o.until.Sub(now), now.Before(o.until)
}

// Next is the outcome of another attempt to write the same object, with the next attempt later each time.
func (o Outcome) Next(attempt Outcome, now time.Time) Outcome {
	attempt.Full, attempt.times = o.Full, o.times+1
	attempt.until = now.Add(LeftAloneFor(attempt.times))
	return attempt
}
