// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
)

func TestOriginsAreFoundByCluster(t *testing.T) {
	x := originIndex{}
	a := ownership.Origin{Source: ownership.Source{Identifier: "a", Namespace: "foo"}, Resource: ownershiptest.InBar("").Kind.GroupResource(), Name: "db"}
	b := ownership.Origin{Source: ownership.Source{Identifier: "b", Namespace: "foo"}, Resource: ownershiptest.InBar("").Kind.GroupResource(), Name: "db"}
	x.insert(a, ownershiptest.InBar("db"))
	x.insert(b, ownershiptest.InBar("db"))
	if len(x["a"]) != 1 || len(x["b"]) != 1 || len(x.places(a)) != 1 {
		t.Errorf("want each origin with its cluster, got %v", x)
	}
	if _, ok := x["a"][b]; ok {
		t.Error("want no origin of another cluster")
	}
	x.remove(a, ownershiptest.InBar("db"))
	x.forgetKinds(sets.New(ownershiptest.InBar("").Kind.GroupResource()))
	x.remove(b, ownershiptest.InBar("db"))
	if len(x) != 0 {
		t.Errorf("want nothing to be left, got %v", x)
	}
}

// BenchmarkOrphans is one scrape. Its cost for each cluster must not grow with the fleet.
func BenchmarkOrphans(b *testing.B) {
	for _, n := range []int{1000, 2000, 4000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			h := NewHub(nil, NewClusters(ClustersOptions{}), nil, nil)
			for i := range n {
				h.origins.insert(ownership.Origin{Source: ownership.Source{Identifier: fmt.Sprint(i), Namespace: "foo"}, Resource: ownershiptest.InBar("").Kind.GroupResource(), Name: "db"}, ownershiptest.InBar("db"))
			}
			for b.Loop() {
				for i := range n {
					h.originsIn(fmt.Sprint(i))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/cluster")
		})
	}
}
