// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// connectedCluster connects a real API server.
func connectedCluster(t *testing.T) (Connected, *apiServer) {
	t.Helper()
	s := realServer(t, 0)
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", newFrontend(t, s).kubeconfig(t, s.token(t)))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	got, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	cl, ok := got.(Connected)
	if !ok {
		t.Fatalf("want a connection, got %T", got)
	}
	return cl, s
}

// awaitEvents returns the events of a controller as soon as there are n, and one with a series if there should be one.
func (s *apiServer) awaitEvents(t *testing.T, controller string, n int, repeated bool) []eventsv1.Event {
	t.Helper()
	var found []eventsv1.Event
	connectiontest.Eventually(t, "the events are there", func() bool {
		list, err := s.client.EventsV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reportingController=" + controller})
		if err != nil {
			t.Fatal(err)
		}
		found = list.Items
		return len(found) == n && (!repeated || slices.ContainsFunc(found, func(e eventsv1.Event) bool { return e.Series != nil }))
	}, func() any { return found })
	return found
}

// TestEventsAreThoseOfClientGo makes the same calls to client-go's recorder and to that of a connection, and compares
// what is in the cluster then.
func TestEventsAreThoseOfClientGo(t *testing.T) {
	cl, s := connectedCluster(t)
	const controller = "test.example.org"
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Thing",
		"metadata": map[string]any{"namespace": "kube-public", "name": "thing", "uid": "u-1", "resourceVersion": "7"},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "masthead", UID: "u-2", ResourceVersion: "8"}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "u-3"}}
	const calls = 5
	emit := func(r events.EventRecorder) {
		r.Eventf(object, nil, corev1.EventTypeNormal, "Synced", "Synchronise", "a note with %d %s", 2, "values")
		r.Eventf(account, object, corev1.EventTypeWarning, "Refused", "Pull", "100%% \"quoted\"\nand < & >")
		r.Eventf(namespace, nil, corev1.EventTypeNormal, "Synced", "Synchronise", "of a cluster-scoped object")
		pod := &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "pod", UID: types.UID("u-4"), FieldPath: "spec",
		}
		r.Eventf(pod, nil,
			corev1.EventTypeNormal, "Synced", "Synchronise", "by reference")
		annotated, ok := r.(events.AnnotatedEventRecorder)
		if !ok {
			t.Fatalf("%T does not annotate events", r)
		}
		annotated.AnnotatedEventf(
			account, nil, map[string]string{"example.org/a": "b"}, corev1.EventTypeNormal, "Annotated", "Synchronise", "annotated")
	}
	// A repeated event is sent when the first is there: client-go's would otherwise wait for ten seconds.
	repeat := func(r events.EventRecorder) {
		r.Eventf(object, nil, corev1.EventTypeNormal, "Synced", "Synchronise", "another note")
	}

	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: s.client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer broadcaster.Shutdown()
	results := [2][]eventsv1.Event{}
	for i, r := range []events.EventRecorder{broadcaster.NewRecorder(scheme.Scheme, controller), cl.GetEventRecorder(controller)} {
		emit(r)
		s.awaitEvents(t, controller, calls, false)
		repeat(r)
		results[i] = s.awaitEvents(t, controller, calls, true)
		for j := range results[i] {
			e := &results[i][j]
			if err := s.client.EventsV1().Events(e.Namespace).Delete(t.Context(), e.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if time.Since(e.EventTime.Time) > time.Minute || e.Series != nil && time.Since(e.Series.LastObservedTime.Time) > time.Minute {
				t.Errorf("want the times of the event, got %v", e)
			}
			prefix, hash, _ := strings.Cut(e.Name, ".")
			if hash == "" {
				t.Errorf("want a name with a suffix, got %q", e.Name)
			}
			e.ObjectMeta = metav1.ObjectMeta{Namespace: e.Namespace, Name: prefix, Annotations: e.Annotations}
			e.EventTime = metav1.MicroTime{}
			if e.Series != nil {
				e.Series.LastObservedTime = metav1.MicroTime{}
			}
		}
		slices.SortFunc(results[i], func(a, b eventsv1.Event) int { return strings.Compare(a.Note, b.Note) })
	}
	if diff := cmp.Diff(results[0], results[1]); diff != "" {
		t.Errorf("-client-go, +got:\n%s", diff)
	}
}

// TestLongNotesAreCut has a note that the API would refuse.
func TestLongNotesAreCut(t *testing.T) {
	cl, s := connectedCluster(t)
	const controller = "long.example.org"
	note := strings.Repeat("ä", maxNote) + " and more"
	cl.GetEventRecorder(controller).Eventf(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "pod"}, nil,
		corev1.EventTypeNormal, "Synced", "Synchronise", "x%s", note)
	e := s.awaitEvents(t, controller, 1, false)[0]
	if want := "x" + strings.Repeat("ä", maxNote/2-1); e.Note != want {
		t.Errorf("want whole characters of at most %d bytes, got %d: %q", maxNote, len(e.Note), e.Note)
	}
}

// TestEventThatIsGoneIsWrittenAgain deletes an event between two occurrences.
func TestEventThatIsGoneIsWrittenAgain(t *testing.T) {
	cl, s := connectedCluster(t)
	const controller = "gone.example.org"
	r := cl.GetEventRecorder(controller)
	emit := func() {
		r.Eventf(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "pod"}, nil,
			corev1.EventTypeNormal, "Synced", "Synchronise", "note")
	}
	emit()
	first := s.awaitEvents(t, controller, 1, false)[0]
	if err := s.client.EventsV1().Events("default").Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	emit()
	if again := s.awaitEvents(t, controller, 1, true)[0]; again.Series.Count != 2 || again.Note != "note" {
		t.Errorf("want the event with both occurrences, got %v", again)
	}
}
