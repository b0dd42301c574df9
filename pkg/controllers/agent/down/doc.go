// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package down brings to a workload cluster what the hub has made of a claim: fields that Crossplane has filled in
// late, with the record of the claim's object, and connection Secrets. The status is brought by package report.
//
// A workload cluster gets the Secrets that the claim's object in the hub controls, and no others: it chooses names, and
// could choose that of any Secret. A Secret that a label keeps in the hub is not delivered. In the workload cluster, no
// Secret is written over that does not belong to the claim, and only copies of ours are deleted.
package down
