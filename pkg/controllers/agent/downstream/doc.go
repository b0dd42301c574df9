// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package downstream propagates from the hub to a workload cluster: late-initialized fields, with the record of the
// claim's object, connection Secrets, and what is reported to users: the hub's status and the condition AgentSynced, an
// annotation where a definition drops conditions, and events. What goes down is decided by pure functions (decide.go),
// whose test has every situation. Scope is what the steps of one reconcile share. The agent's metrics are here, too.
//
//   - A workload cluster gets only the Secrets that the claim's object in the hub controls: it chooses names, and could
//     choose any Secret's. A Secret that a label keeps in the hub is not delivered. In the workload cluster, Secrets
//     that do not belong to the claim are never overwritten, and only our copies are deleted.
//   - Writes of a claim's metadata require that the claim has not changed since it was read, and that the cluster
//     answers with that very claim. An answer with another object does not change the cache.
//   - Nothing is written twice. Texts of the hub's errors are not reported: they name its webhooks and addresses.
//   - Each series has the name of a workload cluster and ends with its engagement. The owner of a workload cluster
//     cannot choose a label value: metrics count the reasons found, not those that a claim shows.
package downstream
