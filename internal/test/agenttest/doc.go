// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agenttest holds what tests of the agent share: the fixture of a hub and a workload cluster, with what users
// and Crossplane do in them, and small objects. It imports no package of the agent, so that tests of each can use it.
package agenttest
