// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health says how objects fare: whether a Deployment has its Pods, whether a Job has failed, whether a load balancer has an
// address, and, for kinds that it has never heard of, what their conditions say. docs/health.md has the table, and
// testdata a folder for each kind with an object for each case.
//
// It is kstatus (fluxcd/cli-utils) behind an interface of our own. kstatus is right about most kinds of Kubernetes and about
// custom resources that follow its conventions. Where it is not what people expect of a health (a failed Pod is "current", so is a
// running Job and a load balancer without an address), or where it depends on the time of day, a case of our own comes first;
// the fixtures say why. HealthRules, which platform teams write in CEL, come before both.
//
// It guarantees:
//
//   - A Result depends on the object alone. There is no clock in it, so that nobody has to look again when nothing has changed, and
//     no number in it that changes on its own while nothing else does, so that it is not written again and again.
//   - Whatever is in an object, Assess does not panic, does not change it, and returns a valid Result. What cannot be understood
//     is Unknown, and concerns that object alone.
//   - What an object says (messages, reasons, names of containers) is cut to a bounded length and freed of control
//     characters before it is repeated.
//   - The expressions of a HealthRule end: what an evaluation may cost is bounded, however large the object is.
//
// Rejected: a grace period for objects that nobody has looked at yet, as it needs a clock; they are Unknown with the reason
// NoStatus until somebody has. Rejected, too: guessing that a custom resource is well because it has no status.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: a Result is made
// of the object and of the HealthRules, which the hub's administrators write and which can read nothing but the object. An object
// that makes a rule fail, or expensive, is Unknown itself and changes no other object's Result.
package health
