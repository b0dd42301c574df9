// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reason holds a failure of a cluster's connection with its reason, which users read in conditions, events and
// metrics. The reasons are in apis/fleet.
package reason
