// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent pushes claims from workload clusters to the hub, where Crossplane provisions them, and copies their
// status and connection Secrets back. "agent-definitions" keeps the definitions of claim kinds in each cluster; "agent"
// reconciles one claim at a time, regardless of its kind:
//
//   - look (facts.go) gathers what watches and caches have, without calling an API server.
//   - plan.Decide is a pure function from these facts to a plan. Its test has the table of every situation.
//   - apply (apply.go) executes the plan's steps. Each write is conditional on the state that the plan saw.
//   - show copies down and reports, whether or not the steps succeeded.
//
// docs/claims.md has the guarantees. Packages below: view (hub, clusters, events), ownership, propagation (what is
// synchronised), hubaccess (identities), plan, definition, down (late fields, Secrets), report, ledger (state between
// reconciles), scope (state of one), answer (errors of API servers), reason.
//
// What does the owner of one workload cluster gain? Claims in the namespaces that the class pairs with the cluster,
// with the content of their own claims, and their status and connection Secrets. docs/security.md lists what was tried.
package agent
