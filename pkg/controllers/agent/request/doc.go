// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request names claims for the queues of the agent, and holds things by claim.
package request
