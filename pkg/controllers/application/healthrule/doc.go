// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package healthrule follows the HealthRules of the hub: it makes of them the Assessor by which components are judged,
// and tells their authors in their status whether they are followed.
//
// Before the rules have been read there is no Assessor. Of several rules for a kind, the oldest counts. Only the
// objects are assessed again for which another rule counts now. A status that has not changed is not written.
//
// Which rule is followed, and what its status says, is in status.go and is pure; the controller is in rules.go.
//
// What does the owner of one workload cluster gain? Nothing: rules are written in the hub, and nothing of a workload
// cluster is read here.
package healthrule
