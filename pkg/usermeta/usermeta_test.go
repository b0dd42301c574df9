// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package usermeta

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOwned(t *testing.T) {
	cases := map[string]struct {
		reason string
		key    string
		owned  bool
	}{
		"Plain":         {"A key without a prefix is the user's.", "tier", true},
		"OwnDomain":     {"So is one of a domain that is not reserved.", "acmeco.org/tier", true},
		"App":           {"app.kubernetes.io is meant for users.", "app.kubernetes.io/name", true},
		"SimilarDomain": {"A domain that only ends in the same letters is another one.", "notcrossplane.io/x", true},
		"Crossplane":    {"What steers Crossplane is not the user's.", "crossplane.io/paused", false},
		"Package":       {"Nor is anything below its domain.", "pkg.crossplane.io/package", false},
		"Masthead":      {"What Masthead recognises its objects by is its own.", "masthead.dev/managed-by", false},
		"Kubectl":       {"kubectl keeps the whole object there.", "kubectl.kubernetes.io/last-applied-configuration", false},
		"ClusterAPI":    {"*.x-k8s.io is Kubernetes'.", "cluster.x-k8s.io/cluster-name", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			if tc.owned {
				want[tc.key] = "v"
			}
			if diff := cmp.Diff(want, Owned(map[string]string{tc.key: "v"})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
