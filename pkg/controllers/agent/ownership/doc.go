// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership decides who owns an object of the hub.
//
// An object of the hub names its source: the identifier of a workload cluster and a namespace there. It also names the
// UIDs of both (Residence), because names are reused, and that of the claim. An object away from where the claim goes
// or had its object is the claim's only by that UID (Belongs). Everything here is pure: it reads and computes
// annotations.
//
// What can the owner of one workload cluster gain? Nothing: what a claim says about its source is never read. Consent
// to an adoption must be written in the hub.
package ownership
