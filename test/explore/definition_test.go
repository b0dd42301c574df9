// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
)

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

// withdraws reports whether the claim kind is not offered at the moment.
func (w *world) withdraws() bool {
	return w.runs.agent && w.hub.Get(key(xrds, "", xrdName)).GetLabels()[fleetv1alpha1.PublishLabel] == "false"
}

// withdrawnSettled checks the clusters when everything is at rest and the claim kind is not offered.
func (c *checker) withdrawnSettled() {
	for _, cluster := range c.w.clusters {
		have := cluster.server.Get(key(crds, "", claims.String()))
		if have == nil {
			continue
		}
		if _, closed := definition.ClosedSince(have); closed && len(cluster.server.List(claims)) > 0 {
			c.fail("A definition that has claims is open", "that of %s refuses their changes", cluster.identifier)
		}
	}
}
