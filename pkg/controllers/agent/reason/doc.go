// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reason recognises answers of workload clusters that should be reported to users.
package reason
