// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

func TestClusterValues(t *testing.T) {
	seen := map[string]mcr.ClusterName{}
	for _, tc := range []struct {
		reason  string
		cluster mcr.ClusterName
		want    []string
	}{
		{"A cluster is named by its object in the hub.", "capi/fleet/w1", []string{"fleet", "w1", "capi"}},
		{"Another source is another cluster.", "kubeconfig/fleet/w1", []string{"fleet", "w1", "kubeconfig"}},
		{"Names have dots.", "kubeconfig/fleet/a.b", []string{"fleet", "a.b", "kubeconfig"}},
		{"The hub has no namespace.", "", []string{"", "hub", "hub"}},
		{"A cluster called hub is not the hub.", "capi/fleet/hub", []string{"fleet", "hub", "capi"}},
		{"Another name is kept whole.", "w1", []string{"", "w1", ""}},
		{"A name of two parts is kept whole.", "fleet/w1", []string{"", "fleet/w1", ""}},
		{"A part that is missing makes another name.", "capi//w1", []string{"", "capi//w1", ""}},
		{"Something in front makes another name.", "a/capi/fleet/w1", []string{"", "a/capi/fleet/w1", ""}},
		{"Another cluster called hub is not the hub.", "hub", []string{"", "hub", ""}},
	} {
		got := ClusterValues(tc.cluster)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
		}
		labels := prometheus.Labels{}
		for i, l := range clusterLabels() {
			labels[l] = got[i]
		}
		if diff := cmp.Diff(labels, ClusterLabels(tc.cluster)); diff != "" {
			t.Errorf("%s\nClusterLabels: -want +got\n%s", tc.reason, diff)
		}
		key := strings.Join(got, "|")
		if other, taken := seen[key]; taken {
			t.Errorf("%s\n%q and %q share their series", tc.reason, other, tc.cluster)
		}
		seen[key] = tc.cluster
	}
	if diff := cmp.Diff([]string{"fleet", "w1", "capi", "status"}, ClusterValues("capi/fleet/w1", "status")); diff != "" {
		t.Errorf("Further labels follow.\n%s", diff)
	}
}
