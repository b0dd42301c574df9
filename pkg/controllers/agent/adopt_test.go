// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// formerly are annotations of an object that a namespace with the UID "old" of the cluster "c1" has pushed.
func formerly(annotations map[string]string) map[string]string {
	maps.Copy(annotations, residence{"c1", "old"}.annotations())
	return annotations
}

func TestAdoptable(t *testing.T) {
	us := source{"w1", "foo"}
	by, from := fleetv1alpha1.AdoptableByAnnotation, fleetv1alpha1.ReleasedFromAnnotation
	adopt := map[string]string{fleetv1alpha1.AdoptAnnotation: "true"}
	now := metav1.NewTime(time.Unix(1, 0))
	for name, tc := range map[string]struct {
		reason     string
		us         source
		home       residence
		hub, claim map[string]string
		deleting   bool
		want       bool
	}{
		"ByName":               {reason: "The hub's administrator named us.", us: us, hub: map[string]string{by: "w1/foo"}, want: true},
		"AnyNamespace":         {reason: "He named our cluster.", us: us, hub: map[string]string{by: "w1/*"}, want: true},
		"OtherNamespace":       {reason: "He named another namespace.", us: us, hub: map[string]string{by: "w1/bar"}, claim: adopt},
		"OtherCluster":         {reason: "He named another cluster.", us: us, hub: map[string]string{by: "w2/*"}, claim: adopt},
		"AnyCluster":           {reason: "There is no consent for everybody.", us: us, hub: map[string]string{by: "*/*"}, claim: adopt},
		"OnlyTheClaim":         {reason: "The owner of a workload cluster alone gains nothing.", us: us, claim: adopt},
		"OwnsForged":           {reason: "What a claim says about consent is not consent.", us: us, claim: map[string]string{by: "w1/foo", from: "w1/foo"}},
		"TakenBack":            {reason: "It was his, and he asks for it.", us: us, hub: map[string]string{from: "w1/foo"}, claim: adopt, want: true},
		"NotTakenBackByItself": {reason: "A claim that is made anew does not ask for the old data.", us: us, hub: map[string]string{from: "w1/foo"}},
		"NotTrue":              {reason: "Only one value is a request.", us: us, hub: map[string]string{from: "w1/foo"}, claim: map[string]string{fleetv1alpha1.AdoptAnnotation: "yes"}},
		"ReleasedByOther":      {reason: "It was somebody else's.", us: us, hub: map[string]string{from: "w2/foo"}, claim: adopt},
		"Deleting":             {reason: "What goes is not taken.", us: us, hub: map[string]string{by: "w1/foo"}, deleting: true},
		"Owned":                {reason: "What is somebody's is not nobody's, whatever else it says.", us: us, hub: map[string]string{by: "w1/foo", fleetv1alpha1.SourceUIDAnnotation: "w2"}},
		"Former": {
			reason: "What an earlier namespace of the name has left is given by the hub's administrator.", us: us, home: residence{"c1", "new"}, want: true,
			hub: formerly(map[string]string{by: "w1/foo", fleetv1alpha1.SourceUIDAnnotation: "w1", fleetv1alpha1.SourceNamespaceAnnotation: "foo"}),
		},
		"FormerWithoutConsent": {
			reason: "It is not its successor's.", us: us, home: residence{"c1", "new"}, claim: adopt,
			hub: formerly(map[string]string{fleetv1alpha1.SourceUIDAnnotation: "w1", fleetv1alpha1.SourceNamespaceAnnotation: "foo"}),
		},
		"FormerReleased": {
			reason: "Nor is what it gave up.", us: us, home: residence{"c1", "new"}, claim: adopt, hub: formerly(map[string]string{from: "w1/foo"}),
		},
		"FormerOfAnother": {
			reason: "An earlier namespace of another source is somebody else.", us: us, home: residence{"c1", "new"},
			hub: formerly(map[string]string{by: "w1/foo", fleetv1alpha1.SourceUIDAnnotation: "w2", fleetv1alpha1.SourceNamespaceAnnotation: "foo"}),
		},
		"ReleasedBySame": {
			reason: "The same namespace takes back what it gave up.", us: us, home: residence{"c1", "old"}, claim: adopt, want: true,
			hub: formerly(map[string]string{from: "w1/foo"}),
		},
		"Anonymous":         {reason: "A cluster without identifier owns nothing.", us: source{"", "foo"}, hub: map[string]string{by: "/foo"}},
		"SlashInIdentifier": {reason: "Identifiers are free text, namespaces are not.", us: source{"w1/foo", "bar"}, hub: map[string]string{by: "w1/foo"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.ObjectMeta{Annotations: tc.hub}
			if tc.deleting {
				obj.DeletionTimestamp = &now
			}
			if got := adoptable(obj, &metav1.ObjectMeta{Annotations: tc.claim}, tc.us, tc.home); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestAdoptionNeedsTheConsentOfTheHub(t *testing.T) {
	f := newFixture(t)
	theirs := f.object(f.target, "db")
	theirs.Object["spec"] = map[string]any{"version": "8", "tags": []any{"hub"}, "compositionRef": map[string]any{"name": "c"}}
	f.create(f.hub, theirs)
	us := source{f.identifier, f.namespace}.String()
	f.claim("db", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{
			fleetv1alpha1.AdoptAnnotation: "true", fleetv1alpha1.AdoptableByAnnotation: us, fleetv1alpha1.ReleasedFromAnnotation: us,
		})
	})
	f.synced("db", ReasonConflict)
	f.settled()
	if now, err := f.get(f.hub, f.target, "db"); err != nil || now.GetResourceVersion() != theirs.GetResourceVersion() {
		t.Fatalf("want the workload cluster alone to gain nothing, got %v (%v)", now.Object, err)
	}

	f.edit(f.hub, theirs, func() { theirs.SetAnnotations(map[string]string{fleetv1alpha1.AdoptableByAnnotation: us}) })
	claim := f.synced("db", ReasonSynced)
	hub, err := f.get(f.hub, f.target, "db")
	if err != nil || hub.GetUID() != theirs.GetUID() {
		t.Fatalf("want the very object, got %v (%v)", hub.Object, err)
	}
	annotations := hub.GetAnnotations()
	for _, key := range []string{
		AppliedHashAnnotation, fleetv1alpha1.CreatedByAnnotation, fleetv1alpha1.SourceClusterUIDAnnotation, fleetv1alpha1.SourceNamespaceUIDAnnotation,
	} {
		if annotations[key] == "" {
			t.Errorf("want it to have the annotation %s", key)
		}
		delete(annotations, key)
	}
	if diff := cmp.Diff(source{f.identifier, f.namespace}.annotations(), annotations); diff != "" {
		t.Errorf("want it to be ours and the consent to be used up (-want +got):\n%s", diff)
	}
	if got, _, _ := unstructured.NestedString(hub.Object, "spec", "version"); got != "5.7" {
		t.Errorf("want what the claim says to be applied, got version %q", got)
	}
	if got := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]; got != "" {
		t.Errorf("want the annotation of the conflict to be gone, got %q", got)
	}
}

func TestReleasedObjectIsTakenBackOnRequest(t *testing.T) {
	f := newFixture(t, orphaning)
	claim := f.claim("db", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(u.Object, []string{"x"}, "spec", "tags")
	})
	before := f.pushed("db")
	f.synced("db", ReasonSynced)
	if err := f.workload.Delete(f.ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")

	claim = f.claim("db", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{fleetv1alpha1.AdoptAnnotation: "true"})
		_ = unstructured.SetNestedStringSlice(u.Object, []string{"x"}, "spec", "tags")
	})
	f.synced("db", ReasonSynced)
	hub, err := f.get(f.hub, f.target, "db")
	if err != nil || hub.GetUID() != before.GetUID() || ownershipOf(true, hub, source{f.identifier, f.namespace}) != ownershipOurs {
		t.Fatalf("want the very object to be ours again, got %v (%v)", hub.Object, err)
	}
	// Had our manager of before kept its fields, they could not be removed any more.
	f.edit(f.workload, claim, func() { unstructured.RemoveNestedField(claim.Object, "spec", "tags") })
	f.eventually("a removed field goes", func() error {
		hub, err := f.get(f.hub, f.target, "db")
		if tags, there, _ := unstructured.NestedSlice(hub.Object, "spec", "tags"); err != nil || there {
			return fmt.Errorf("tags are %v: %w", tags, errors.Join(err, errors.New("not gone")))
		}
		return nil
	})
}

func TestConflictIsAnnotatedOnce(t *testing.T) {
	f := newFixture(t)
	holder := f.object(f.target, "db")
	holder.SetAnnotations(source{"another", "theirs"}.annotations())
	f.create(f.hub, holder)
	f.served()
	f.inHub(holder)
	// A definition that drops conditions which it does not know is the reason for the annotation.
	f.claim("db")
	claim := f.synced("db", ReasonConflict)
	want := `the namespace "theirs" of the cluster with the identifier "another"`
	if got := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]; got != want {
		t.Errorf("want the annotation %q, got %q", want, got)
	}
	f.settled()
	if got := f.workloadAsked.about("PATCH", "/mysqlinstances/db?"); len(got) != 1 {
		t.Errorf("want one write of the annotation, got:\n%s", strings.Join(got, "\n"))
	}

	// The holder goes, and the annotation goes with the write of the finalizer.
	if err := f.hub.Delete(f.ctx, holder); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	claim = f.synced("db", ReasonSynced)
	if got, there := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]; there {
		t.Errorf("want no annotation, got %q", got)
	}
	f.settled()
	if got := f.workloadAsked.about("PATCH", "/mysqlinstances/db?"); len(got) != 2 {
		t.Errorf("want one more write, of the finalizer and the annotation, got:\n%s", strings.Join(got, "\n"))
	}
}

func TestWithConflict(t *testing.T) {
	claim := parse(t, `{'metadata': {'name': 'db', 'annotations': {'a': 'b'}}}`)
	if withConflict(claim, "") != nil {
		t.Error("want nothing to do for a claim without a conflict")
	}
	noted := withConflict(claim, strings.Repeat("x", 1000)+"\x1b")
	got := noted.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]
	if len(got) > multicluster.MaxForeignText+3 || noted.GetAnnotations()["a"] != "b" {
		t.Errorf("want a bounded text beside what is there, got %d characters and %v", len(got), noted.GetAnnotations())
	}
	if withConflict(noted, strings.Repeat("x", 1000)+"\x1b") != nil {
		t.Error("want nothing to do for a conflict that is noted")
	}
	if diff := cmp.Diff(claim.GetAnnotations(), withConflict(noted, "").GetAnnotations()); diff != "" {
		t.Errorf("want the annotation to go with the conflict (-want +got):\n%s", diff)
	}
}
