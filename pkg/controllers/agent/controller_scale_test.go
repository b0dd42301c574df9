// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// engagedFleet is an agent with n clusters in which a kind is followed.
func engagedFleet(t *testing.T, n int) *agent {
	t.Helper()
	h := idleHub()
	a := &agent{
		hub: h, workloads: h.Clusters, fleet: h.Fleet, definitions: &definition.Reconciler{},
		requirements: &requirementReconciler{hub: h, identities: &hubaccess.Clients{}, ledger: &index.Ledger{}, metrics: downstream.New(nil)},
	}
	h.Clusters.Engaged, h.Clusters.Disengaged = a.engaged, a.disengaged
	h.Watcher = idleWorkload(t, "hub", index.Identity{}).Watcher
	for i := range n {
		w := idleWorkload(t, mcr.ClusterName(fmt.Sprint("w", i)), index.Identity{})
		h.Clusters.Add(t.Context(), w.Name, w)
		w.Follow("first", index.Followed{Kind: ownershiptest.InBar("").Kind, InHub: true})
		h.RefreshFollowed(w)
	}
	return a
}

// TestANamespaceOfTheHubCostsTheSameInAFleetOfAnySize counts reads of classes. It used to be one per cluster.
func TestANamespaceOfTheHubCostsTheSameInAFleetOfAnySize(t *testing.T) {
	scheme := kruntime.NewScheme()
	if err := fleetv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reads := func(n int) int {
		a, fleet, got := engagedFleet(t, n), &fakefleet.Fleet{}, 0
		a.fleet = fleet
		for i := range n {
			name := mcr.ClusterName(fmt.Sprint("w", i))
			fleet.Set(connection.Cluster{Name: name, Enrolment: connection.Enrolment{Class: "gold"}})
			a.enrolmentChanged(name)
		}
		classes := fake.NewClientBuilder().WithScheme(scheme).
			WithObjects(&fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}}).
			WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					got++
					return c.Get(ctx, k, o, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					got++
					return c.List(ctx, l, opts...)
				},
			}).Build()
		namespace := index.NamespaceMetadata()
		namespace.Name = "team"
		var queue workqueue.TypedRateLimitingInterface[multicluster.ObjectRequest]
		a.hubNamespaceHandler(classes).Create(t.Context(), event.TypedCreateEvent[*metav1.PartialObjectMetadata]{Object: namespace}, queue)
		return got
	}
	if small, large := reads(10), reads(20); small != large {
		t.Errorf("want as many reads in 20 clusters as in 10, got %d and %d", large, small)
	}
}

// TestForgettingAClusterLooksAtItsOwnRequests counts the requests visited. They used to be the whole fleet's.
func TestForgettingAClusterLooksAtItsOwnRequests(t *testing.T) {
	h := idleHub()
	r := &requirementReconciler{ledger: &index.Ledger{}}
	const clusters, claims = 50, 3
	requestOf := func(i int) multicluster.ObjectRequest {
		return multicluster.ObjectRequest{
			ClusterName: mcr.ClusterName(fmt.Sprint("w", i/claims)), Kind: ownershiptest.InBar("").Kind,
			NamespacedName: ownershiptest.InBar(fmt.Sprint(i)).NamespacedName,
		}
	}
	for i := range clusters * claims {
		req := requestOf(i)
		h.Wait(ownershiptest.InBar(fmt.Sprint(i)), req)
		r.ledger.Edit(req, func(e *index.Entry) { e.Reason = fleetv1alpha1.ReasonSynced })
	}
	looks := 0
	gone := func(req multicluster.ObjectRequest) bool {
		if looks++; req.ClusterName != "w7" {
			t.Errorf("want the requests of w7 alone to be looked at, got %s", req)
		}
		return true
	}
	h.ForgetRequests("w7", gone)
	r.ledger.Forget("w7", gone)
	// The state of the cluster, and of others, in the queue and the ledger.
	var of, others [2]int
	for i := range clusters * claims {
		req, n := requestOf(i), &others
		if req.ClusterName == "w7" {
			n = &of
		}
		n[0] += len(h.WaitingFor(ownershiptest.InBar(fmt.Sprint(i))))
		if r.ledger.Entry(req) != (index.Entry{}) {
			n[1]++
		}
	}
	if looks == 0 || of != [2]int{} {
		t.Errorf("want all of its requests to be forgotten, got %v after %d looks", of, looks)
	}
	if n := (clusters - 1) * claims; others != [2]int{n, n} {
		t.Errorf("want %d of others to stay, got %v", n, others)
	}
}
