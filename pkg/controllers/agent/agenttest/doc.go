// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agenttest has what the tests of the agent's packages share.
package agenttest
