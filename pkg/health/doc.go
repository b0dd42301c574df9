// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health computes the health of objects: whether a Deployment has its Pods, whether a Job has failed, whether a
// load balancer has an address, and, for kinds it does not know, what their conditions say. docs/health.md has the
// table, and testdata has a folder for each kind with an object for each case.
//
// HealthRules, which platform teams write in CEL, come first, then the rules of the shipped library (library, with a
// file of fixtures beside each file of rules). Kubernetes' own kinds are judged by kstatus (fluxcd/cli-utils) behind an
// internal interface. Where kstatus does not match what users expect (a failed Pod is "current", so is a running Job
// and a load balancer without an address), or depends on the time of day, Masthead's own case takes precedence; the
// fixtures say why. For all other kinds the conditions, the phase and a few other common status fields are read
// (conditions.go, words.go, generic.go).
//
// It guarantees:
//
//   - A Result depends on the object alone. It uses no clock, so unchanged objects need no requeue, and contains no
//     number that changes on its own, so it is not rewritten needlessly.
//   - Regardless of what an object contains, Assess does not panic, does not change it, and returns a valid Result. An
//     object that cannot be understood is Unknown, never Healthy, and affects no other object. A kind without a
//     reporting controller is Healthy only by an explicit rule.
//   - Text from an object (messages, reasons, container names) is truncated and stripped of control characters before
//     it is repeated.
//   - The evaluation of a HealthRule terminates: its cost is bounded regardless of the size of the object, and so is
//     the input of the helper functions. The number of kinds whose rules are cached is bounded, as clusters can have
//     any number of kinds.
//   - A rule with a wildcard never reads whole objects whose metadata suffices, such as Secrets.
//
// Rejected: a grace period for objects that no controller has observed yet, as it needs a clock; they are Unknown with
// the reason NoStatus until then. Rejected, too: assuming that a custom resource without a status is healthy.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: a Result is
// computed from the object and the HealthRules, which the hub's administrators write and which can read only the
// object. An object that makes a rule fail or exceed its cost is Unknown itself and changes no other object's Result.
package health
