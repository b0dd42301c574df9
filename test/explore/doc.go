// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explore runs real controllers through many orders of events: the agent, discovery and references, of which
// each walk draws some. A walk is a sequence of steps. Each step is one of those possible at that moment: a request of
// a controller is executed, fails, or is executed after its sender has given up; an event reaches a watch; the garbage
// collector acts; the manager is killed, frozen or thawed; time passes; a user, an administrator, Crossplane or a
// hostile tenant writes something. Between two steps the controllers run until they wait for one of them. Properties
// are checked on every change of an object, and again after all faults have stopped and everything has come to rest.
//
// The API servers are those of package apiserver, in memory. Time is that of a testing/synctest bubble, so that a walk
// of hours takes milliseconds.
//
//   - make explore MINUTES=10 walks for ten minutes of one processor. SEED= begins with another seed.
//   - TestExplore walks in CI. It prints the number of walks and of steps, and its seed.
//   - TestSearch departs from the usual order of a script in every state of a small world.
//   - TestCounterexamples replays the files of testdata, each a sequence of steps that once broke a property.
//
// A walk that fails is shortened to the steps that matter, and printed as such a file.
package explore
