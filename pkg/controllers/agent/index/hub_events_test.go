// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// TestWhatChangesInTheHubGoesAheadOfWhatIsToBePushed queues claims to be pushed, then changes the object of one pushed
// before: its status must not wait for them. Other clusters' requests keep their order.
func TestWhatChangesInTheHubGoesAheadOfWhatIsToBePushed(t *testing.T) {
	t.Parallel()
	const cluster, other mcr.ClusterName = "capi/fleet/w1", "capi/fleet/w2"
	fleet := &fakefleet.Fleet{}
	for _, name := range []mcr.ClusterName{cluster, other} {
		fleet.Set(connection.Cluster{Name: name, State: connection.StateConnected, Enrolment: connection.Enrolment{Identifier: string(name)}})
	}
	fair := multicluster.NewFairQueue("test", multicluster.FairQueueOptions[multicluster.ObjectRequest]{Workers: 1})
	t.Cleanup(fair.ShutDown)
	queue := &multicluster.EventQueue[multicluster.ObjectRequest]{}
	if err := queue.Start(t.Context(), fair); err != nil {
		t.Fatal(err)
	}
	h := idleHub()
	h.Fleet, h.Requirements = fleet, queue
	place := ownershiptest.InBar("pushed")
	pushed := objectAt(place, ownership.Source{})
	pushed.SetNamespace("foo")
	pushed.SetUID("claim-uid")
	pushed.SetAnnotations(map[string]string{fleetv1alpha1.HubObjectAnnotation: "bar//claim-uid"})
	h.Clusters.Add(t.Context(), cluster, watchedCluster(t, cluster, place.Kind, pushed))
	claim := func(cluster mcr.ClusterName, name string) multicluster.ObjectRequest {
		return multicluster.ObjectRequest{ClusterName: cluster, Kind: place.Kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: name}}
	}
	queue.Add(claim(other, "created"))
	for _, name := range []string{"first", "second", "third"} {
		queue.Add(claim(cluster, name))
	}
	us := ownership.Source{Identifier: string(cluster), Namespace: "foo"}
	stray := objectAt(place, us)
	stray.SetNamespace("attacker")
	h.Handle(kindwatch.Event{Type: kindwatch.Updated, Kind: place.Kind, Object: stray, Old: stray})
	if got, want := fair.Len(), 4; got != want {
		t.Errorf("want a stray to take no turn of the claim's cluster, got %d requests and not %d", got, want)
	}
	obj := objectAt(place, us)
	h.Handle(kindwatch.Event{Type: kindwatch.Updated, Kind: place.Kind, Object: obj, Old: obj})
	var got []string
	for range 3 {
		r, _ := fair.Get()
		got = append(got, string(r.ClusterName)+" "+r.Name)
		fair.Done(r)
	}
	want := []string{"capi/fleet/w2 created", "capi/fleet/w1 pushed", "capi/fleet/w1 first"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
