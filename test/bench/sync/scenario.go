// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// The subjects that are measured.
const (
	masthead = "Masthead"
	none     = "no program: the same writes, sent by the benchmark"
	shipped  = "kube-bind v0.3.0 as shipped"
	lifted   = "kube-bind v0.3.0, client limits lifted"
)

// A scenario is one run: a number of claims, spread evenly over a number of workload clusters, carried by one program.
type scenario struct {
	subject  string
	clusters int
	objects  int

	// withLatency is whether latencies and the requests at idle are measured as well.
	withLatency bool
}

// shippedObjects is the number of claims with which kube-bind as shipped is measured: at five claims a second, more
// would take too long.
const shippedObjects = 300

// pacedObjects is the number of claims in whose runs latencies are measured, if it is among the requested numbers.
const pacedObjects = 1000

// scenarios are the runs on a fleet of so many workload clusters, in their order.
func (s settings) scenarios(clusters int) []scenario {
	with := pacedObjects
	if !slices.Contains(s.objects, with) {
		with = s.objects[0]
	}
	var out []scenario
	add := func(subject string, objects int) {
		out = append(out, scenario{
			subject: subject, clusters: clusters, objects: objects,
			// At five objects a second, a pace of fifty measures the length of a queue.
			withLatency: objects == with && subject != shipped,
		})
	}
	for _, n := range s.objects {
		add(masthead, n)
	}
	if s.ceiling {
		out = append(out, scenario{subject: none, clusters: clusters, objects: with})
	}
	if s.lifted != "" {
		for _, n := range s.objects {
			add(lifted, n)
		}
	}
	if s.konnector != "" && slices.Contains(s.objects, shippedObjects) {
		add(shipped, shippedObjects)
	}
	return out
}

// inTurn are the runs on a fleet of so many workload clusters, repeated as often as requested. Every second time they
// run in reverse order: a program that is measured later finds API servers that have worked for longer.
func (s settings) inTurn(clusters int) []scenario {
	once := s.scenarios(clusters)
	var out []scenario
	for range s.turns {
		out = append(out, once...)
		slices.Reverse(once)
	}
	return out
}
