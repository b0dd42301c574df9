// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answer reads the errors of requests to the hub and to workload clusters: what a user should know of one, and
// whether it passes by itself, or is no answer at all.
//
// What the hub answers is shown in the claim of whoever caused it, and in no other. The answer to another identity than
// the manager's names that identity; the manager's own name in the hub is not told.
package answer
