// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestParseClusterName(t *testing.T) {
	ours := func(modify func(*inventoryv1alpha1.ClusterProfile)) *inventoryv1alpha1.ClusterProfile {
		p := &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:   "team-a",
				Name:        "capi-w1",
				Labels:      map[string]string{"x-k8s.io/cluster-manager": "masthead"},
				Annotations: map[string]string{fleetv1alpha1.ClusterNameAnnotation: "capi/team-a/w1"},
			},
			Spec: inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "masthead"}},
		}
		modify(p)
		return p
	}
	type result struct {
		Of         mcr.ClusterName
		OK         bool
		Affected   mcr.ClusterName
		AffectedOK bool
	}
	cases := map[string]struct {
		reason  string
		profile *inventoryv1alpha1.ClusterProfile
		want    result
	}{
		"Ours": {
			reason:  "A profile that Masthead wrote is about the cluster that it names.",
			profile: ours(func(*inventoryv1alpha1.ClusterProfile) {}),
			want:    result{Of: "capi/team-a/w1", OK: true, Affected: "capi/team-a/w1", AffectedOK: true},
		},
		"NoLabel": {
			reason:  "Without our label it is not ours, but it takes the name of a profile of ours.",
			profile: ours(func(p *inventoryv1alpha1.ClusterProfile) { p.Labels = nil }),
			want:    result{Affected: "capi/team-a/w1", AffectedOK: true},
		},
		"OtherManager": {
			reason:  "With another cluster manager's name it is not ours, regardless of its label.",
			profile: ours(func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = "other" }),
			want:    result{Affected: "capi/team-a/w1", AffectedOK: true},
		},
		"ClusterOfAnotherNamespace": {
			reason: "A profile never speaks for a cluster of another namespace, which is another tenant's.",
			profile: ours(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Annotations[fleetv1alpha1.ClusterNameAnnotation] = "capi/team-b/w1"
			}),
			want: result{Affected: "capi/team-a/w1", AffectedOK: true},
		},
		"Copied": {
			reason:  "A copy under another name is about no cluster.",
			profile: ours(func(p *inventoryv1alpha1.ClusterProfile) { p.Name = "copy" }),
			want:    result{},
		},
		"NotOursAtAll": {
			reason:  "A profile of another manager with a name of its own affects no cluster.",
			profile: &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "spoke1"}},
			want:    result{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got result
			got.Of, got.OK = parseClusterName(tc.profile)
			got.Affected, got.AffectedOK = clusterAffectedBy(tc.profile)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
