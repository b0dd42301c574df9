// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks what the documentation says against the code: links lead somewhere, tests that are named exist,
// every metric and every reason of a condition is explained, YAML fits the schemas of its kinds, commands name what
// there is, and the site map has every page.
package docs
