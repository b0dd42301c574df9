// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answer interprets the errors of requests to the hub and to workload clusters: what to report to users,
// whether an error resolves by itself, or is no answer at all.
//
// The hub's answer is shown only in the claim that caused it. The answer to an identity other than the manager names
// that identity; the manager's own name in the hub is not revealed.
package answer
