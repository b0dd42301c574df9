// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health says how objects fare: whether a Deployment has its Pods, whether a Job has failed, whether a load
// balancer has an address, and, for kinds that it has never heard of, what their conditions say. docs/health.md has the
// table, and testdata a folder for each kind with an object for each case.
//
// HealthRules, which platform teams write in CEL, come first, and then those of the library that is shipped (library,
// with a file of fixtures beside each file of rules). The kinds of Kubernetes are judged by kstatus (fluxcd/cli-utils)
// behind an interface of our own. Where kstatus is not what people expect of a health (a failed Pod is "current", so is
// a running Job and a load balancer without an address), or where it depends on the time of day, a case of our own
// comes before it; the fixtures say why. Of all other kinds the conditions, the phase and a few other fields are read
// that most statuses have (conditions.go, words.go, generic.go).
//
// It guarantees:
//
//   - A Result depends on the object alone. There is no clock in it, so that nobody has to look again when nothing has
//     changed, and no number in it that changes on its own while nothing else does, so that it is not written again and
//     again.
//   - Whatever is in an object, Assess does not panic, does not change it, and returns a valid Result. What cannot be
//     understood is Unknown, never Healthy, and concerns that object alone. A kind that nobody reports on is Healthy
//     only by a rule that says so.
//   - What an object says (messages, reasons, names of containers) is cut to a bounded length and freed of control
//     characters before it is repeated.
//   - The expressions of a HealthRule end: what an evaluation may cost is bounded, however large the object is, and so
//     is what the helper functions look through. How many kinds' rules are remembered is bounded, as clusters can have
//     any number of kinds.
//   - A rule with a wildcard never has objects read whole of which the metadata suffices, such as Secrets.
//
// Rejected: a grace period for objects that nobody has looked at yet, as it needs a clock; they are Unknown with the
// reason NoStatus until somebody has. Rejected, too: guessing that a custom resource is well because it has no status.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: a Result is
// made of the object and of the HealthRules, which the hub's administrators write and which can read nothing but the
// object. An object that makes a rule fail, or expensive, is Unknown itself and changes no other object's Result.
package health
