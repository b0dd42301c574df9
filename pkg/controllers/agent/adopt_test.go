// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

func TestAdoptionNeedsTheConsentOfTheHub(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	theirs := f.object(f.target, "db")
	theirs.Object["spec"] = map[string]any{"version": "8", "tags": []any{"hub"}, "compositionRef": map[string]any{"name": "c"}}
	f.Create(f.hub, theirs)
	us := ownership.Source{Identifier: f.identifier, Namespace: f.namespace}.String()
	f.claim("db", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{
			fleetv1alpha1.AdoptAnnotation: "true", fleetv1alpha1.AdoptableByAnnotation: us, fleetv1alpha1.ReleasedFromAnnotation: us,
		})
	})
	f.synced("db", fleetv1alpha1.ReasonConflict)
	f.settled()
	if now, err := f.get(f.hub, f.target, "db"); err != nil || now.GetResourceVersion() != theirs.GetResourceVersion() {
		t.Fatalf("want the workload cluster alone to gain nothing, got %v (%v)", now.Object, err)
	}

	f.Edit(f.hub, theirs, func() { theirs.SetAnnotations(map[string]string{fleetv1alpha1.AdoptableByAnnotation: us}) })
	claim := f.synced("db", fleetv1alpha1.ReasonSynced)
	hub, err := f.get(f.hub, f.target, "db")
	if err != nil || hub.GetUID() != theirs.GetUID() {
		t.Fatalf("want the very object, got %v (%v)", hub.Object, err)
	}
	annotations := hub.GetAnnotations()
	for _, key := range []string{
		ownership.AppliedHashAnnotation, fleetv1alpha1.CreatedByAnnotation, fleetv1alpha1.SourceClusterUIDAnnotation, fleetv1alpha1.SourceNamespaceUIDAnnotation,
		fleetv1alpha1.SourceClaimUIDAnnotation,
	} {
		if annotations[key] == "" {
			t.Errorf("want it to have the annotation %s", key)
		}
		delete(annotations, key)
	}
	if diff := cmp.Diff(ownership.Source{Identifier: f.identifier, Namespace: f.namespace}.Annotations(), annotations); diff != "" {
		t.Errorf("want it to be ours and the consent to be used up (-want +got):\n%s", diff)
	}
	if got, _, _ := unstructured.NestedString(hub.Object, "spec", "version"); got != "5.7" {
		t.Errorf("want what the claim says to be applied, got version %q", got)
	}
	if got := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]; got != "" {
		t.Errorf("want the annotation of the conflict to be gone, got %q", got)
	}
}

func TestConflictIsAnnotatedAndToldOnce(t *testing.T) {
	t.Parallel()
	// The record of the object, written when no late-initialized fields are expected any more, is not counted.
	f := prepareFixture(t)
	f.options = patient
	f.start()
	holder := f.object(f.target, "db")
	holder.SetAnnotations(ownership.Source{Identifier: "another", Namespace: "theirs"}.Annotations())
	f.Create(f.hub, holder)
	f.served()
	f.inHub(holder)
	// The annotation exists because a definition may drop conditions that it does not know.
	f.claim("db")
	claim := f.synced("db", fleetv1alpha1.ReasonConflict)
	want := `the namespace "theirs" of the cluster with the identifier "another"`
	if got := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]; got != want {
		t.Errorf("want the annotation %q, got %q", want, got)
	}
	f.settled()
	if got := f.workloadAsked.about("PATCH", "/mysqlinstances/db?"); len(got) != 1 {
		t.Errorf("want one write of the annotation, got:\n%s", strings.Join(got, "\n"))
	}

	// The holder is deleted, and the write of the finalizer removes the annotation.
	if err := f.hub.Delete(f.Ctx, holder); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	claim = f.synced("db", fleetv1alpha1.ReasonSynced)
	if got, there := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]; there {
		t.Errorf("want no annotation, got %q", got)
	}
	f.settled()
	if got := f.workloadAsked.about("PATCH", "/mysqlinstances/db?"); len(got) != 2 {
		t.Errorf("want one more write, of the finalizer and the annotation, got:\n%s", strings.Join(got, "\n"))
	}
	f.Within("both transitions are reported by an event", func() error {
		l := &eventsv1.EventList{}
		if err := f.workload.List(f.Ctx, l, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		var got []string
		for _, e := range l.Items {
			if e.Series != nil {
				return fmt.Errorf("%s is reported several times", e.Reason)
			}
			got = append(got, e.Type+" "+e.Reason)
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"Normal Synced", "Warning Conflict"}, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}
