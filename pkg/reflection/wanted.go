// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

// Wanted returns the managed resources that an import wants, given the observations so far: first the cluster, then
// what the cluster names. Call it again after each observation, until nothing new is wanted. A managed resource of the
// import that is no longer among them must be deleted.
//
// Each has managementPolicies ["Observe"], deletionPolicy Orphan where its kind has one, and in forProvider only the
// identifiers, so nothing in it could be written to the cloud. The exception is ClusterAuth, whose controller ignores
// policies: it writes nothing to the cloud under any.
func Wanted(imp Import, served Schemas, observed Observed) (Want, error) {
	if err := imp.Validate(); err != nil {
		return Want{}, err
	}
	w := &wanter{imp: imp, served: served, seen: map[string]bool{}}
	findCloud(imp.Cloud).want(w, observed)
	w.want.Lossy = w.notes.list()
	return w.want, nil
}
