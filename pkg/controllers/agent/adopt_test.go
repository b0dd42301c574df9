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
	theirs := f.NewClaim(f.Target, "db")
	theirs.Object["spec"] = map[string]any{"version": "8", "tags": []any{"hub"}, "compositionRef": map[string]any{"name": "c"}}
	f.Create(f.Hub, theirs)
	us := ownership.Source{Identifier: f.Identifier, Namespace: f.Namespace}.String()
	f.CreateClaim("db", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{
			fleetv1alpha1.AdoptAnnotation: "true", fleetv1alpha1.AdoptableByAnnotation: us, fleetv1alpha1.ReleasedFromAnnotation: us,
		})
	})
	f.WaitForSynced("db", fleetv1alpha1.ReasonConflict)
	f.WaitForIdle()
	if now, err := f.GetClaim(f.Hub, f.Target, "db"); err != nil || now.GetResourceVersion() != theirs.GetResourceVersion() {
		t.Fatalf("want the workload cluster alone to gain nothing, got %v (%v)", now.Object, err)
	}

	f.Edit(f.Hub, theirs, func() { theirs.SetAnnotations(map[string]string{fleetv1alpha1.AdoptableByAnnotation: us}) })
	claim := f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	hub, err := f.GetClaim(f.Hub, f.Target, "db")
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
	if diff := cmp.Diff(ownership.Source{Identifier: f.Identifier, Namespace: f.Namespace}.Annotations(), annotations); diff != "" {
		t.Errorf("want it to be ours and the consent to be used up (-want +got):\n%s", diff)
	}
	if got, _, _ := unstructured.NestedString(hub.Object, "spec", "version"); got != "5.7" {
		t.Errorf("want what the claim says to be applied, got version %q", got)
	}
	if got := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]; got != "" {
		t.Errorf("want the annotation of the conflict to be gone, got %q", got)
	}
}

func TestConflictIsAnnotatedAndReportedOnce(t *testing.T) {
	t.Parallel()
	// The record of the object, written when no late-initialized fields are expected any more, is not counted.
	f := prepareFixture(t)
	f.options = patient
	f.start()
	holder := f.NewClaim(f.Target, "db")
	holder.SetAnnotations(ownership.Source{Identifier: "another", Namespace: "theirs"}.Annotations())
	f.Create(f.Hub, holder)
	f.WaitForServed()
	f.inHub(holder)
	// The annotation exists because a definition may drop conditions that it does not know.
	f.CreateClaim("db")
	claim := f.WaitForSynced("db", fleetv1alpha1.ReasonConflict)
	want := `the namespace "theirs" of the cluster with the identifier "another"`
	if got := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]; got != want {
		t.Errorf("want the annotation %q, got %q", want, got)
	}
	f.WaitForIdle()
	if got := f.WorkloadRequests.Filter("PATCH", "/mysqlinstances/db?"); len(got) != 1 {
		t.Errorf("want one write of the annotation, got:\n%s", strings.Join(got, "\n"))
	}

	// The holder is deleted, and the write of the finalizer removes the annotation.
	if err := f.Hub.Delete(f.Ctx, holder); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	claim = f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	if got, there := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]; there {
		t.Errorf("want no annotation, got %q", got)
	}
	f.WaitForIdle()
	if got := f.WorkloadRequests.Filter("PATCH", "/mysqlinstances/db?"); len(got) != 2 {
		t.Errorf("want one more write, of the finalizer and the annotation, got:\n%s", strings.Join(got, "\n"))
	}
	f.Within("both transitions are reported by an event", func() error {
		l := &eventsv1.EventList{}
		if err := f.Workload.List(f.Ctx, l, client.InNamespace(f.Namespace)); err != nil {
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
