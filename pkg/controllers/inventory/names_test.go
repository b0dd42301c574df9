// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

func TestParseClusterName(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   mcr.ClusterName
		want   clusterKey
		wantOK bool
	}{
		"Complete": {
			reason: "A source, a namespace and a name.",
			name:   "capi/team-a/w1",
			want:   clusterKey{source: "capi", object: types.NamespacedName{Namespace: "team-a", Name: "w1"}},
			wantOK: true,
		},
		"Hub":           {reason: "The hub has no profile.", name: ""},
		"TwoParts":      {reason: "Names of other providers are not ours.", name: "team-a/w1"},
		"FourParts":     {reason: "No part of a name holds a slash.", name: "capi/team-a/w1/x"},
		"EmptyPart":     {reason: "A part that is missing is not the empty string.", name: "capi//w1"},
		"TrailingSlash": {reason: "A cluster has a name.", name: "capi/team-a/"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := parseClusterName(tc.name)
			if ok != tc.wantOK || got != tc.want {
				t.Errorf("%s\nparseClusterName(%q): want %v, %v, got %v, %v", tc.reason, tc.name, tc.want, tc.wantOK, got, ok)
			}
		})
	}
}

func TestProfileKeyOfLongNames(t *testing.T) {
	long := strings.Repeat("a", validation.DNS1123SubdomainMaxLength-1)
	a := profileKey(clusterKey{source: "kubeconfig", object: types.NamespacedName{Namespace: "n", Name: long + "a"}})
	b := profileKey(clusterKey{source: "kubeconfig", object: types.NamespacedName{Namespace: "n", Name: long + "b"}})
	if a == b {
		t.Errorf("Two long names must not share a profile: both are %q", a.Name)
	}
	for _, key := range []types.NamespacedName{a, b} {
		if problems := validation.IsDNS1123Subdomain(key.Name); len(problems) > 0 {
			t.Errorf("The name of a profile must be the name of an object: %q: %v", key.Name, problems)
		}
	}
	dotted := profileKey(clusterKey{source: "kubeconfig", object: types.NamespacedName{
		Namespace: "n", Name: strings.Repeat("a.", 126) + "a",
	}})
	if problems := validation.IsDNS1123Subdomain(dotted.Name); len(problems) > 0 {
		t.Errorf("A name that is cut after a dot must still be the name of an object: %q: %v", dotted.Name, problems)
	}
}

func TestClusterOf(t *testing.T) {
	ours := func(modify func(*inventoryv1alpha1.ClusterProfile)) *inventoryv1alpha1.ClusterProfile {
		p := &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:   "team-a",
				Name:        "capi-w1",
				Labels:      map[string]string{"x-k8s.io/cluster-manager": "masthead"},
				Annotations: map[string]string{ClusterNameAnnotation: "capi/team-a/w1"},
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
			reason:  "With another cluster manager's name it is not ours, whatever its label says.",
			profile: ours(func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = "other" }),
			want:    result{Affected: "capi/team-a/w1", AffectedOK: true},
		},
		"ClusterOfAnotherNamespace": {
			reason: "A profile never speaks for a cluster of another namespace, which is another tenant's.",
			profile: ours(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Annotations[ClusterNameAnnotation] = "capi/team-b/w1"
			}),
			want: result{Affected: "capi/team-a/w1", AffectedOK: true},
		},
		"Copied": {
			reason:  "A copy under another name is about no cluster.",
			profile: ours(func(p *inventoryv1alpha1.ClusterProfile) { p.Name = "copy" }),
			want:    result{},
		},
		"NotOursAtAll": {
			reason:  "A profile of another manager with a name of its own concerns nobody here.",
			profile: &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "spoke1"}},
			want:    result{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got result
			got.Of, got.OK = clusterOf(tc.profile)
			got.Affected, got.AffectedOK = clusterAffectedBy(tc.profile)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
