// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"runtime"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// Limits restrict how much of an API server's responses is read, see package limits. Zero values mean the default.
type Limits struct {
	// Object is for responses that are neither a list nor a watch: objects, discovery. Default: 8 MiB.
	Object limits.Limits
	// List is for one response to a GET of a collection: a page of a long list. Default: 16 MiB.
	List limits.Limits
	// Event is for one event of a watch. A watch as a whole has no limit: it is meant to continue. Default: 8 MiB.
	Event limits.Limits
	// Failure is for an error response. Default: 256 KiB.
	Failure limits.Limits
	// Events is the pace of all watches of a cluster, including bookmarks and the objects of streaming lists. See
	// DefaultEventPace.
	Events RateLimit
	// Answers is the pace of all other responses to the clients of a cluster. Responses other than lists wait only for
	// bytes above 64 KiB, and probes are not delayed. See DefaultAnswerPace.
	Answers RateLimit
}

// RateLimit is how many events or responses are read from a cluster. Every 32 KiB count as one more. A cluster that
// sends more has to wait. Zero values mean the default.
type RateLimit struct {
	// PerSecond is how many are read per second, and Burst how many at once.
	PerSecond, Burst int
	// SustainedPerSecond is how many are read per second in the long run, after SustainedBurst. It is lower, because only
	// listing a large cluster sends that much, and that ends.
	SustainedPerSecond, SustainedBurst int
	// BusyPerSecond is how many a cluster may send in a second, and half of Burst on top of that, before it is busy.
	BusyPerSecond int
	// SharedPerSecond is how many are read per second from all busy clusters together, if there are several. Each has an
	// equal share, but at least LeastPerSecond.
	SharedPerSecond, LeastPerSecond int
}

// The shared pace of busy clusters, per second and core. It keeps the processor free for clusters that send little,
// rather than busy with data read from the others.
const sharedEventsPerCore, sharedAnswersPerCore = 250, 125

// DefaultEventPace is the pace of watches. An honest cluster of 50,000 objects is listed in a few seconds at this pace.
func DefaultEventPace() RateLimit {
	return RateLimit{
		PerSecond: 2_000, Burst: 1_000, SustainedPerSecond: 500, SustainedBurst: 100_000, BusyPerSecond: 100,
		SharedPerSecond: sharedEventsPerCore * runtime.GOMAXPROCS(0), LeastPerSecond: 2,
	}
}

// DefaultAnswerPace is the pace of responses: 64 MiB at once, 32 MiB per second, and 16 MiB in the long run. A claim
// takes three responses.
func DefaultAnswerPace() RateLimit {
	return RateLimit{
		PerSecond: 1_000, Burst: 2_000, SustainedPerSecond: 500, SustainedBurst: 50_000, BusyPerSecond: 50,
		SharedPerSecond: sharedAnswersPerCore * runtime.GOMAXPROCS(0), LeastPerSecond: 1,
	}
}

// Or replaces zero values by the defaults.
func (p RateLimit) Or(defaults RateLimit) RateLimit {
	for _, n := range []struct {
		is       *int
		standard int
	}{
		{&p.PerSecond, defaults.PerSecond},
		{&p.Burst, defaults.Burst},
		{&p.SustainedPerSecond, defaults.SustainedPerSecond},
		{&p.SustainedBurst, defaults.SustainedBurst},
		{&p.BusyPerSecond, defaults.BusyPerSecond},
		{&p.SharedPerSecond, defaults.SharedPerSecond},
		{&p.LeastPerSecond, defaults.LeastPerSecond},
	} {
		if *n.is <= 0 {
			*n.is = n.standard
		}
	}
	return p
}

// Default limits in bytes. Other limits are those of package limits.
const (
	DefaultObjectLimit  = 8 << 20
	DefaultListLimit    = 16 << 20
	DefaultEventLimit   = 8 << 20
	DefaultFailureLimit = 256 << 10
)

// WithDefaults replaces zero values by the defaults.
func (l Limits) WithDefaults() Limits {
	l.Object = l.Object.Or(limits.WithBytes(DefaultObjectLimit))
	l.List = l.List.Or(limits.WithBytes(DefaultListLimit))
	l.Event = l.Event.Or(limits.WithBytes(DefaultEventLimit))
	l.Failure = l.Failure.Or(limits.WithBytes(DefaultFailureLimit))
	l.Events, l.Answers = l.Events.Or(DefaultEventPace()), l.Answers.Or(DefaultAnswerPace())
	return l
}
