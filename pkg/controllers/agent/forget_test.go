// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// idleWorkload is an instance of a cluster whose watcher does not run.
func idleWorkload(t *testing.T, name mcr.ClusterName, id index.Identity) *index.Cluster {
	t.Helper()
	watcher, err := kindwatch.New(kindwatch.Options{Client: fakefleet.Objects{Interface: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}, Handler: func(kindwatch.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	return index.NewCluster(index.Connection{Name: name, Identity: id, Watcher: watcher})
}

func TestNothingIsKeptOfClaimsWhoseKindOrClusterIsGone(t *testing.T) {
	kind := ownershiptest.InBar("").Kind
	crd := kind.GroupResource().String()
	newer := kind
	newer.Version = "v2"
	for name, tc := range map[string]struct {
		reason string
		goes   func(*definition.Reconciler, *index.Hub, *index.Cluster)
	}{
		"Unfollowed": {reason: "A kind that is not followed any more.", goes: func(d *definition.Reconciler, _ *index.Hub, w *index.Cluster) { d.Unfollow(w, crd) }},
		"OtherVersion": {reason: "A kind that is followed in another version.", goes: func(d *definition.Reconciler, _ *index.Hub, w *index.Cluster) {
			d.Follow(w, crd, index.Followed{Kind: newer})
		}},
		"Disengaged": {reason: "A cluster that is gone.", goes: func(_ *definition.Reconciler, h *index.Hub, w *index.Cluster) {
			h.Clusters.Remove(w.Name, w)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := idleHub()
			w := idleWorkload(t, "w1", index.Identity{})
			h.Watcher = w.Watcher
			h.Clusters.Add(t.Context(), w.Name, w)
			m := downstream.New(prometheus.NewRegistry())
			r := &requirementReconciler{
				identities: &hubaccess.Clients{}, reports: downstream.Reporter{Metrics: m},
				hub: h, ledger: &index.Ledger{}, workloads: h.Clusters, metrics: m,
			}
			d := definition.New(definition.Options{Hub: h, Workloads: h.Clusters, KindGone: r.forgetKind})
			d.Follow(w, crd, index.Followed{Kind: kind})
			req := multicluster.ObjectRequest{ClusterName: "w1", Kind: kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
			work := func() {
				h.Wait(ownershiptest.InBar("db"), req)
				r.ledger.Edit(req, func(e *index.Entry) { e.Reason = fleetv1alpha1.ReasonSynced })
			}
			left := func() int {
				n := len(h.WaitingFor(ownershiptest.InBar("db")))
				if r.ledger.Entry(req) != (index.Entry{}) {
					n++
				}
				return n
			}
			work()
			tc.goes(d, h, w)
			if name != "Disengaged" && left() != 0 {
				t.Errorf("%s want nothing to be left, got %d", tc.reason, left())
			}
			// A reconcile that was running ends afterwards.
			work()
			r.forgetGone(req)
			if left() != 0 {
				t.Errorf("%s want nothing to be left of a reconcile that was under way, got %d", tc.reason, left())
			}
		})
	}
}
