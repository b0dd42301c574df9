// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// TestReferencesOfAPass: the policy about members depends on the Cluster in the status. A pass that ended with a
// refused node pool removed the Cluster from the status, and users who may create Machines could do so for the cluster
// until the next pass.
func TestReferencesOfAPass(t *testing.T) {
	ref := func(kind string) fleetv1alpha1.ImportReference {
		return fleetv1alpha1.ImportReference{Kind: kind, Name: "shop"}
	}
	for name, tc := range map[string]struct {
		reason      string
		before, now []fleetv1alpha1.ImportReference
		reflected   bool
		want        []fleetv1alpha1.ImportReference
	}{
		"Whole": {
			reason: "What a whole pass did not come to has gone.", reflected: true,
			before: []fleetv1alpha1.ImportReference{ref("Cluster"), ref("MachinePool")}, now: []fleetv1alpha1.ImportReference{ref("Cluster")},
			want: []fleetv1alpha1.ImportReference{ref("Cluster")},
		},
		"EndedEarly": {
			reason: "What a pass that ended early did not come to may be there still.",
			before: []fleetv1alpha1.ImportReference{ref("Cluster"), ref("Subnet")}, now: []fleetv1alpha1.ImportReference{ref("Subnet")},
			want: []fleetv1alpha1.ImportReference{ref("Subnet"), ref("Cluster")},
		},
		"First": {reason: "At first there is nothing to keep.", now: []fleetv1alpha1.ImportReference{ref("Subnet")}, want: []fleetv1alpha1.ImportReference{ref("Subnet")}},
	} {
		t.Run(name, func(t *testing.T) {
			imp := &fleetv1alpha1.ClusterImport{Status: fleetv1alpha1.ClusterImportStatus{References: tc.before}}
			res := result{references: tc.now, complete: tc.reflected}
			if diff := cmp.Diff(tc.want, buildReferences(newScope(imp), res)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
