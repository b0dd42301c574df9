// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

// RecordLookups calls lookedUp with each field that Read looks up in what is observed, whether it is there or not.
func RecordLookups(imp Import, served Schemas, observed Observed, lookedUp func(field string)) error {
	r := &reader{imp: imp, served: served, observed: observed, notes: notes{lookedUp: lookedUp}}
	c := findCloud(imp.Cloud)
	b, ok := r.atProvider(observed.resources(imp, c.kinds[0])[imp.ClusterName], c.kinds[0].Kind)
	if !ok {
		return ErrNotObserved
	}
	return c.read(r, b)
}
