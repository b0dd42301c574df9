// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agenttest holds helpers shared by the tests of the agent's packages.
package agenttest
