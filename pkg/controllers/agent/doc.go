// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent carries claims from workload clusters to the hub, where Crossplane provisions what they ask for, and
// brings their status and their connection Secrets back.
//
// Two controllers do it. "agent-definitions" keeps the CustomResourceDefinitions of the claim kinds that the hub
// publishes in each workload cluster, and thereby decides which kinds are synchronised where. "agent" works on one
// claim at a time, whatever its kind:
//
//   - look (facts.go) gathers what watches and caches know of the claim. No API server is asked.
//   - plan.Decide is a pure function from these facts to a plan. Its test has the table of every situation.
//   - apply (apply.go) carries out the steps of the plan, each on condition that what it writes is as the plan saw it.
//   - show brings down and reports what the hub has made of the claim, whatever became of the steps.
//
// What it guarantees, and what was decided and why, is in docs/design/agent.md.
//
// # Where to change what
//
//   - what is known of the hub and the clusters, and which event concerns whom: package view, routes.go;
//   - whose an object of the hub is: package ownership;
//   - what travels, and what a claim shows: package propagation; which fields are Crossplane's: package crossplane;
//   - with whose rights the hub is used: package hubaccess, authenticate.go;
//   - what is decided about a claim, and where it goes: package plan;
//   - what a definition is in a workload cluster, and when it comes and goes: package definition;
//   - late fields and connection Secrets: package down; status, conditions and events: package report;
//   - what is kept between two reconciles: package ledger; what the steps of one share: package scope;
//   - what an error of an API server says: package answer; metrics: package metrics;
//   - what pauses a claim: package plan; claims whose owners ask for them: asked.go;
//   - deletions: deletion.go, ledger/inflight.go, vanished.go; clusters that leave: offboard.go;
//   - reasons that users read: package reason.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// The ability to have claims in the namespaces that the class pairs with the cluster, with the content of the cluster's
// own claims, and to read the status and the connection Secrets of these. Not more; docs/design/agent.md says why,
// attack by attack. An object of the hub that names his claim's source, wherever somebody made it, neither stops the
// claim nor goes with it, as long as the claim's own object is where the claim records it or where it belongs.
//
// By pausing a claim he has less done for it, and nothing that he could not have by leaving the claim alone: the object
// in the hub is not paused, and a paused claim does not keep his cluster from leaving. By asking for a claim to be
// looked at he has the hub asked once in ten seconds for it (asked.go), on turns that his cluster has anyway.
package agent
