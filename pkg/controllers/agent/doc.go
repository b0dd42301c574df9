// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent pushes claims from workload clusters to the hub, where Crossplane provisions them, and copies their
// status and connection Secrets back.
//
// It has two controllers. "agent-definitions" keeps the CustomResourceDefinitions of the published claim kinds in each
// workload cluster, and thereby decides which kinds are synchronised where. "agent" reconciles one claim at a time,
// regardless of its kind:
//
//   - look (facts.go) gathers what watches and caches have on the claim. It does not call an API server.
//   - plan.Decide is a pure function from these facts to a plan. Its test has the table of every situation.
//   - apply (apply.go) executes the plan's steps. Each write is conditional on the state that the plan saw.
//   - show copies down and reports what the hub made of the claim, whether or not the steps succeeded.
//
// Guarantees and design decisions are in docs/claims.md.
//
// # Where to change what
//
//   - the view of the hub and the clusters, and the mapping of events to requests: package view, routes.go;
//   - who owns an object of the hub: package ownership;
//   - what is synchronised, and what a claim shows: package propagation; Crossplane's fields: package crossplane;
//   - which identity is used in the hub: package hubaccess, authenticate.go;
//   - what is decided about a claim, and its target in the hub: package plan;
//   - what a definition is in a workload cluster, and when it is added and removed: package definition;
//   - late-initialized fields and connection Secrets: package down; status, conditions and events: package report;
//   - state kept between reconciles: package ledger; state shared by the steps of one: package scope;
//   - how API server errors are classified: package answer; metrics: package metrics;
//   - pausing a claim: package plan; reconciles that claim owners request: asked.go;
//   - deletions: deletion.go, ledger/inflight.go, vanished.go; offboarding clusters: offboard.go;
//   - user-visible reasons: package reason.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// The ability to have claims in the namespaces that the class pairs with the cluster, with the content of the cluster's
// own claims, and to read their status and connection Secrets. Nothing more; docs/claims.md says why, attack by
// attack. An object of the hub that names the claim's source, but not its UID, is no more than a stray, except where
// the claim goes or had its object.
//
// Pausing a claim gains nothing over leaving it alone: the object in the hub is not paused, and a paused claim does not
// keep its cluster from leaving. Requesting a reconcile queries the hub for that claim once in ten seconds at most
// (asked.go), on turns that the cluster has anyway.
package agent
