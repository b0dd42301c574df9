// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import "github.com/masthead-dev/masthead/test/explore/apiserver"

// claimsDefinitionChanged checks that Masthead does not delete the definition of the claims of a cluster while it has
// any: they would be deleted, too.
func (c *checker) claimsDefinitionChanged(cluster *workload, change apiserver.Change) {
	if change.Key != key(crds, "", claims.String()) || !isAgent(change) || !isDeletion(change) {
		return
	}
	for _, claim := range c.claims {
		if claim.cluster == cluster && !claim.gone {
			c.fail("A definition stays while it has claims", "%s deleted that of %s/%s", change.Manager, cluster.identifier, claim.namespace)
		}
	}
}
