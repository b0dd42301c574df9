// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reason holds the reasons of a cluster's connection state, and a failure with such a reason. They are API:
// users read them in conditions, events and metrics. Other packages use them by the names in package connection.
//
// A new reason is added to reasons.go, to package connection's list, and to the tables in docs/enrolment.md.
package reason
