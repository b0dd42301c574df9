// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import "github.com/masthead-dev/masthead/pkg/multicluster"

// bounded makes what a workload cluster's API server said fit to be repeated.
func bounded(text string) string { return multicluster.BoundedText(text) }

// asForeign bounds the text of an error that leaves this package.
func asForeign(err error) error { return multicluster.AsForeign(err) }
