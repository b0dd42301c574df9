// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

// Wanted says which managed resources an import wants, given what is observed so far: first the cluster, then what the
// cluster names. It is to be called again after each observation, until nothing new is wanted. A managed resource of
// the import that is no longer among them is to be deleted.
//
// Each has managementPolicies ["Observe"], deletionPolicy Orphan where its kind has one, and of forProvider the
// identifiers only, so nothing in it could be written to the cloud. The exception is ClusterAuth, whose controller
// knows no policies: it writes nothing to the cloud under any.
func Wanted(imp Import, served Served, observed Observed) (Want, error) {
	if err := imp.Validate(); err != nil {
		return Want{}, err
	}
	w := &wanter{imp: imp, served: served, seen: map[string]bool{}}
	c, _ := cloudOf(imp.Cloud)
	c.want(w, observed)
	w.want.Lossy = w.notes.list()
	return w.want, nil
}
