// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks the documentation against the code: links lead somewhere, named tests exist, every metric and
// every reason of a condition is explained, YAML fits the schemas of its kinds, commands name what exists, and the site
// map has every page.
package docs
