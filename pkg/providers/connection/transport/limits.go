// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"runtime"

	"github.com/masthead-dev/masthead/pkg/bounded"
)

// Limits are how much of an API server's answers is read, see package bounded. Numbers that are zero take their
// default.
type Limits struct {
	// Object is for whatever is neither a list nor a watch: objects, discovery. Default: 8 MiB.
	Object bounded.Limits
	// List is for one answer to a GET of a collection, which is a page where lists are long. Default: 16 MiB.
	List bounded.Limits
	// Event is for one event of a watch. A watch as a whole has none: it is meant to go on. Default: 8 MiB.
	Event bounded.Limits
	// Failure is for an answer that says that something failed. Default: 256 KiB.
	Failure bounded.Limits
	// Events is the pace of all watches of a cluster: of their events, bookmarks and the objects of lists that are streams
	// included. See DefaultEventPace.
	Events Pace
	// Answers is the pace of all other answers that the clients of a cluster get. What is not a list waits only for what
	// is over 64 KiB, and probes are not held up. See DefaultAnswerPace.
	Answers Pace
}

// Pace is how many things are read of a cluster: events, or answers. Every 32 KiB of them count as one more. Who sends
// more has to wait. Numbers that are zero take their default.
type Pace struct {
	// PerSecond is how many are read in a second, and Burst how many at once.
	PerSecond, Burst int
	// SustainedPerSecond is how many are read in a second in the long run, after SustainedBurst. It is lower, because
	// nothing but a large cluster that is listed has so much to say, and that ends.
	SustainedPerSecond, SustainedBurst int
	// BusyPerSecond is how many a cluster may send in a second, and half of Burst on top of that, before it is busy.
	BusyPerSecond int
	// SharedPerSecond is how many are read in a second of all busy clusters together, if they are several. Each has an
	// equal share of it. While the processor is short, they have an eighth of that, and a single one an eighth of
	// PerSecond, but LeastPerSecond however many they are.
	SharedPerSecond, LeastPerSecond int
}

// Of busy clusters together, so much is read in a second for each core. Whoever sends little finds the processor free
// when it does, and not at work on what has been read of the others before.
const sharedEventsPerCore, sharedAnswersPerCore = 250, 125

// DefaultEventPace is the pace of watches. An honest cluster of 50,000 objects is listed at this pace in some seconds.
func DefaultEventPace() Pace {
	return Pace{
		PerSecond: 2_000, Burst: 1_000, SustainedPerSecond: 500, SustainedBurst: 100_000, BusyPerSecond: 100,
		SharedPerSecond: sharedEventsPerCore * runtime.GOMAXPROCS(0), LeastPerSecond: 2,
	}
}

// DefaultAnswerPace is the pace of answers: 64 MiB at once, 32 MiB a second, and 16 in the long run. A claim costs
// three of them.
func DefaultAnswerPace() Pace {
	return Pace{
		PerSecond: 1_000, Burst: 2_000, SustainedPerSecond: 500, SustainedBurst: 50_000, BusyPerSecond: 50,
		SharedPerSecond: sharedAnswersPerCore * runtime.GOMAXPROCS(0), LeastPerSecond: 1,
	}
}

// Or takes what is zero from the defaults.
func (p Pace) Or(defaults Pace) Pace {
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

// Default limits of bytes. Other limits are bounded's own.
const (
	DefaultObjectLimit  = 8 << 20
	DefaultListLimit    = 16 << 20
	DefaultEventLimit   = 8 << 20
	DefaultFailureLimit = 256 << 10
)

// WithDefaults takes what is zero from the defaults.
func (l Limits) WithDefaults() Limits {
	l.Object = l.Object.Or(bounded.WithBytes(DefaultObjectLimit))
	l.List = l.List.Or(bounded.WithBytes(DefaultListLimit))
	l.Event = l.Event.Or(bounded.WithBytes(DefaultEventLimit))
	l.Failure = l.Failure.Or(bounded.WithBytes(DefaultFailureLimit))
	l.Events, l.Answers = l.Events.Or(DefaultEventPace()), l.Answers.Or(DefaultAnswerPace())
	return l
}
