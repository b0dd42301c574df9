// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// hubFixture is one workload cluster for several hubs, without a marker.
type hubFixture struct {
	*testing.T
	server *apiServer
	front  *frontend
	crds   dynamic.ResourceInterface
}

func newHubFixture(t *testing.T) *hubFixture {
	t.Helper()
	s := realServer(t, 0)
	crds := dynamic.NewForConfigOrDie(s.cfg).Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	f := &hubFixture{T: t, server: s, front: newFrontend(t, s), crds: crds}
	f.deleteMarker()
	t.Cleanup(func() { _ = crds.Delete(context.Background(), fleetv1alpha1.HubMarkerName, metav1.DeleteOptions{}) })
	return f
}

// hub starts the manager of a hub in which the cluster is enrolled as "a".
func (f *hubFixture) hub(id hubidentity.Identity, change ...func(*Enrolment)) (*harness, *fakeSource) {
	f.Helper()
	src := newFakeSource()
	h := newHarness(f.T, src, func(o *Options) {
		o.Hub, o.HubInterval = hubidentity.Hub{ID: id, Name: "the hub " + string(id)}, 200*time.Millisecond
	})
	src.set("a", f.front.kubeconfig(f.T, f.server.token(f.T)), change...)
	return h, src
}

func (f *hubFixture) marker() *unstructured.Unstructured {
	f.Helper()
	obj, err := f.crds.Get(context.Background(), fleetv1alpha1.HubMarkerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		f.Fatal(err)
	}
	return obj
}

// deleteMarker deletes the marker and waits until that one is gone. A connected hub may have created another one by
// then.
func (f *hubFixture) deleteMarker() {
	f.Helper()
	before := f.marker()
	if before == nil {
		return
	}
	err := f.crds.Delete(context.Background(), fleetv1alpha1.HubMarkerName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}
	connectiontest.Eventually(f.T, "the marker is gone", func() bool {
		now := f.marker()
		return now == nil || now.GetUID() != before.GetUID()
	})
}

func (f *hubFixture) label(holder string) {
	f.Helper()
	patch := []byte(`{"metadata":{"labels":{"` + fleetv1alpha1.HubLabel + `":"` + holder + `"}}}`)
	if _, err := f.crds.Patch(context.Background(), fleetv1alpha1.HubMarkerName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		f.Fatal(err)
	}
}

// belongsTo waits until the marker names a hub, and its predecessors.
func (f *hubFixture) belongsTo(id hubidentity.Identity, predecessors ...hubidentity.Identity) {
	f.Helper()
	connectiontest.Eventually(f.T, "the marker names the hub "+string(id), func() bool {
		obj := f.marker()
		if obj == nil {
			return false
		}
		m := hubidentity.GetMarker(obj)
		return m.Holder.ID == id && slices.Equal(m.Predecessors, predecessors)
	})
}

func isWrite(line string) bool {
	return !strings.HasPrefix(line, "GET ") && !strings.HasPrefix(line, "WATCH ")
}

// TestSecondHubIsRefusedBeforeItWrites enrols a cluster in a second hub, and then releases it in the first.
func TestSecondHubIsRefusedBeforeItWrites(t *testing.T) {
	f := newHubFixture(t)
	first, firstSource := f.hub("first")
	first.waitFor(t, "a", StateConnected, "")
	f.belongsTo("first")

	written := f.front.count(isWrite)
	second, _ := f.hub("second")
	second.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonOtherHub)
	c, _ := second.Lookup(clusterName("a"))
	if !strings.Contains(c.Message, `"first" (the hub first)`) {
		t.Errorf("want the message to name the hub that has the cluster, got %q", c.Message)
	}
	connectiontest.Eventually(t, "an event tells it", func() bool {
		return slices.ContainsFunc(second.events.list(), func(e string) bool {
			return strings.Contains(e, fleetv1alpha1.ReasonOtherHub) && strings.Contains(e, "the hub first")
		})
	})
	if got := f.front.count(isWrite) - written; got != 0 || len(second.engagements("a")) != 0 {
		t.Errorf("want nothing written and no controller engaged, got %d requests and %d engagements", got, len(second.engagements("a")))
	}

	firstSource.remove("a")
	second.waitFor(t, "a", StateConnected, "")
	f.belongsTo("second", "first")
	c, _ = second.Lookup(clusterName("a"))
	if want := (hubidentity.Owner{ID: "second", Predecessors: []hubidentity.Identity{"first"}}); !c.Hub.Equal(want) {
		t.Errorf("want what the first hub left to be the second's, got %+v", c.Hub)
	}
}

// TestOfTwoHubsAtTheSameInstantOneHasTheCluster starts several hubs at once on an unclaimed cluster.
func TestOfTwoHubsAtTheSameInstantOneHasTheCluster(t *testing.T) {
	f := newHubFixture(t)
	ids := []hubidentity.Identity{"first", "second", "third"}
	hubs := make([]*harness, len(ids))
	var reading sync.WaitGroup
	reading.Add(len(ids))
	var once sync.Map
	f.front.setAnswer(func(_ http.ResponseWriter, r *http.Request) bool {
		// All see that there is no marker before one of them creates it.
		if r.Method == http.MethodPost && r.URL.Path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" {
			if _, again := once.LoadOrStore(r.RemoteAddr, true); !again {
				reading.Done()
			}
			reading.Wait()
		}
		return false
	})
	for i, id := range ids {
		hubs[i], _ = f.hub(id)
	}
	connectiontest.Eventually(t, "one has it, and the others say so", func() bool {
		connected, refused := 0, 0
		for _, h := range hubs {
			switch state, reason := h.state("a"); {
			case state == StateConnected:
				connected++
			case state == StateBackoff && reason == fleetv1alpha1.ReasonOtherHub:
				refused++
			}
		}
		return connected == 1 && refused == len(hubs)-1
	})
	holder := hubidentity.GetMarker(f.marker()).Holder.ID
	for i, h := range hubs {
		if got := len(h.engagements("a")); got != 0 && ids[i] != holder {
			t.Errorf("the hub %q was engaged with a cluster of the hub %q", ids[i], holder)
		}
	}
}

// TestTakeOverWithConsent moves a cluster to another hub without offboarding it from the first.
func TestTakeOverWithConsent(t *testing.T) {
	f := newHubFixture(t)
	first, _ := f.hub("first")
	first.waitFor(t, "a", StateConnected, "")
	second, secondSource := f.hub("second")
	second.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonOtherHub)

	secondSource.change("a", func(e *Enrolment) { e.TakeOverFrom = "first" })
	second.waitFor(t, "a", StateConnected, "")
	f.belongsTo("second", "first")
	first.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonOtherHub)
}

// TestForgedMarkerOnlyDetachesTheCluster writes and deletes the marker, as the owner of a cluster could.
func TestForgedMarkerOnlyDetachesTheCluster(t *testing.T) {
	f := newHubFixture(t)
	first, _ := f.hub("first")
	first.waitFor(t, "a", StateConnected, "")

	f.deleteMarker()
	f.belongsTo("first")
	for name, holder := range map[string]string{"Another": "another-hub", "NoIdentity": "Not_An.Identity"} {
		f.label(holder)
		first.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonOtherHub)
		if got := f.marker().GetLabels()[fleetv1alpha1.HubLabel]; got != holder {
			t.Errorf("%s: want the marker left alone, got %q", name, got)
		}
		f.deleteMarker()
		first.waitFor(t, "a", StateConnected, "")
		f.belongsTo("first")
	}
}

// TestClusterIsClaimedBeforeItIsWrittenTo connects without claiming, as for a class whose clusters are not written to.
func TestClusterIsClaimedBeforeItIsWrittenTo(t *testing.T) {
	f := newHubFixture(t)
	h, _ := f.hub("first")
	h.waitFor(t, "a", StateConnected, "")
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := cl.(*connected)
	if !ok {
		t.Fatalf("got a %T", cl)
	}
	f.deleteMarker()
	conn.transport.HoldWrites(true)
	namespaces := conn.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	write := func() error {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "claimed-"}}}
		_, err := namespaces.Create(t.Context(), obj, metav1.CreateOptions{})
		return err
	}
	posted := f.front.count(func(line string) bool { return strings.HasPrefix(line, "POST /api/v1/namespaces") })
	if err := write(); err == nil || f.front.count(func(line string) bool { return strings.HasPrefix(line, "POST /api/v1/namespaces") }) != posted {
		t.Fatalf("want nothing sent before the cluster is claimed, got %v", err)
	}
	connectiontest.Eventually(t, "it can be written to", func() bool { return write() == nil })
	f.belongsTo("first")
}

// TestClusterThatMayNotBeClaimedSaysSo uses credentials that may not write definitions.
func TestClusterThatMayNotBeClaimedSaysSo(t *testing.T) {
	f := newHubFixture(t)
	f.front.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && r.URL.Path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	h, _ := f.hub("first")
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonForbidden)
	if c, _ := h.Lookup(clusterName("a")); !strings.Contains(c.Message, fleetv1alpha1.HubMarkerName) {
		t.Errorf("want the message to say what is missing, got %q", c.Message)
	}
	f.front.setAnswer(nil)
	h.waitFor(t, "a", StateConnected, "")
}
