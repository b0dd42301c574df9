// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks what the documentation says against the code: links lead somewhere, tests that are named exist,
// and every metric and every reason of a condition is explained.
package docs
