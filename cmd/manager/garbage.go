// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "runtime/debug"

// gcPercent is how much is allocated, in percent of what is in use, before garbage is collected. Go's own default is
// 100. A manager is at rest nearly always, and holds connections and watches for each cluster: with less room for
// garbage, a further cluster takes less memory, and claims no more processor time that could be measured
// (docs/benchmarks.md).
const gcPercent = 50

// collectGarbageEarlier has the runtime do so, unless the operator says otherwise by Go's own variable.
func collectGarbageEarlier(env func(string) string) {
	if env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
