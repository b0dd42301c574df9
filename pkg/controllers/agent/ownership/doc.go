// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership says whose an object of the hub is.
//
// An object of the hub names its source: the identifier of a workload cluster and a namespace there. It also names the
// UIDs of both (Residence), because names are given again. A claim records its object (Record), so that any other
// object that names its source is not obeyed. Everything here is pure: it reads and makes annotations.
//
// What does the owner of one workload cluster gain? Nothing: what a claim says about its source is never read. Consent
// to an adoption has to be written in the hub.
package ownership
