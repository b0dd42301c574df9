// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request identifies claims in the agent's queues, and maps them to values.
package request
