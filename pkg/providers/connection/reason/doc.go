// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reason holds the reasons why a cluster is in the state of its connection, and a failure that has one. They
// are a promise to users, who read them in conditions, events and metrics. Other packages use them by the names that
// package connection gives them.
//
// A new reason is added to reasons.go, to package connection's list, and to the tables in docs/enrolment.md.
//
// What does the owner of one workload cluster gain? Nothing: what a cluster says of itself is in no reason, and in a
// message only as far as package probe takes it.
package reason
