// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
)

func TestNothingIsTakenOverFromAnotherCluster(t *testing.T) {
	kind := ownershiptest.InBar("").Kind
	crd := kind.GroupResource().String()
	for name, tc := range map[string]struct {
		reason   string
		old, now Identity
		takeOver bool
	}{
		"Same":        {reason: "The same cluster reached in another way.", old: Identity{"a", "x"}, now: Identity{"a", "x"}, takeOver: true},
		"OtherObject": {reason: "Another enrolled object of the same name.", old: Identity{"a", "x"}, now: Identity{"b", "x"}},
		"OtherUID":    {reason: "Another cluster behind the same object.", old: Identity{"a", "x"}, now: Identity{"a", "y"}},
		"Unknown":     {reason: "What is not known is not the same.", old: Identity{"a", ""}, now: Identity{"a", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var gone []mcr.ClusterName
			s := NewClusters(ClustersOptions{Engaged: func(*Cluster) {}, Disengaged: func(name mcr.ClusterName) { gone = append(gone, name) }})
			old, now := idleCluster(t, "w1", tc.old), idleCluster(t, "w1", tc.now)
			old.Follow(crd, Followed{Kind: kind})
			old.Wrote(types.NamespacedName{Name: "s"}, CopyState{Version: "7"})
			old.EditDefinition("judged", func(d *Definition) { d.Unoffered = true })
			s.Add(t.Context(), "w1", old)
			s.Add(t.Context(), "w1", now)
			_, kinds := now.KindFor(crd)
			if kinds != tc.takeOver || (now.CopyState(types.NamespacedName{Name: "s"}).Version == "7") != tc.takeOver || (len(gone) == 0) != tc.takeOver {
				t.Errorf("%s want taken over %v, got kinds %v, secrets %v, disengaged %d", tc.reason, tc.takeOver, kinds, now.secrets, len(gone))
			}
			if known := len(now.definitions); known > 1 || known == 1 && !tc.takeOver {
				t.Errorf("%s want nothing of definitions that are not followed, got %v", tc.reason, now.definitions)
			}
			s.Remove("w1", old)
			if len(gone) > 1 || !s.Current("w1", now) {
				t.Errorf("%s want the old one to be disengaged at most once and the new one to count", tc.reason)
			}
		})
	}
}
