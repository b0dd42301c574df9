// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent pushes claims from workload clusters to the hub, where Crossplane provisions them, and copies their
// status and connection Secrets back. "agent-definitions" keeps the definitions of claim kinds in each cluster; "agent"
// reconciles one claim at a time, regardless of its kind:
//
//   - gatherFacts (facts.go) gathers what watches and caches have, without calling an API server.
//   - plan.Decide is a pure function from these facts to a plan. Its test has the table of every situation.
//   - apply (apply.go) executes the plan's steps. Each write is conditional on the state that the plan saw.
//   - propagateDown copies down and reports, whether or not the steps succeeded.
//
// docs/claims.md has the guarantees. Packages below: index (hub, clusters, events, state between reconciles),
// ownership, propagation (what is synchronised), hubaccess (identities, errors of API servers), plan, definition,
// downstream (late fields, Secrets, reports, the state of one reconcile).
//
// What does the owner of one workload cluster gain? Claims in the namespaces that the class pairs with the cluster,
// with the content of their own claims, and their status and connection Secrets. docs/security.md lists what was tried.
package agent
