// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package healthrule follows the HealthRules of the hub: it builds the Assessor of components from them, and reports in
// their status whether they are followed.
//
// Before the rules have been read there is no Assessor. Of several rules for a kind, the oldest counts. Only objects
// with another applicable rule are reassessed. An unchanged status is not written.
//
// status.go decides which rule is followed, and computes its status; it is pure. The controller is in rules.go.
package healthrule
