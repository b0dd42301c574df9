// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reason has the reasons that the agent gives in conditions and events, and recognises answers of workload
// clusters that a user should know about.
package reason
