// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package down propagates from the hub to a workload cluster: late-initialized fields, with the record of the claim's
// object, and connection Secrets. Package report propagates the status.
//
// A workload cluster gets only the Secrets that the claim's object in the hub controls: it chooses names, and could
// choose any Secret's. A Secret that a label keeps in the hub is not delivered. In the workload cluster, Secrets that
// do not belong to the claim are never overwritten, and only our copies are deleted.
package down
