// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localfleet runs a fleet of real control planes as processes on one machine.
package localfleet
