// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

func TestIsNew(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	object := func(age time.Duration, cluster types.UID, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetAnnotations(ownership.Residence{Cluster: cluster, Namespace: "namespace"}.Annotations())
		ownership.MarkCreated(u, now.Add(-age))
		for _, c := range change {
			c(u)
		}
		return u
	}
	going := func(u *unstructured.Unstructured) {
		at := metav1.NewTime(now)
		u.SetDeletionTimestamp(&at)
	}
	confirmed := func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		delete(annotations, fleetv1alpha1.CreatedAtAnnotation)
		u.SetAnnotations(annotations)
	}
	for name, tc := range map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		cluster types.UID
		want    bool
	}{
		"Nothing":  {reason: "There is nothing to be new.", cluster: "a"},
		"New":      {reason: "It was created just now for a claim of this cluster.", objects: []*unstructured.Unstructured{object(time.Second, "a")}, cluster: "a", want: true},
		"Old":      {reason: "Its claim may be restored later.", objects: []*unstructured.Unstructured{object(time.Hour, "a")}, cluster: "a"},
		"Changed":  {reason: "Its claim was there when it was changed.", objects: []*unstructured.Unstructured{object(time.Second, "a", confirmed)}, cluster: "a"},
		"Going":    {reason: "Another client has deleted it already.", objects: []*unstructured.Unstructured{object(time.Second, "a", going)}, cluster: "a"},
		"Replaced": {reason: "Another cluster bears the identifier now, and begins empty.", objects: []*unstructured.Unstructured{object(time.Second, "b")}, cluster: "a"},
		"Unknown":  {reason: "It is not known which cluster bears the identifier.", objects: []*unstructured.Unstructured{object(time.Second, "")}},
		"One of two": {
			reason:  "One of them is a copy, and it is unknown which.",
			objects: []*unstructured.Unstructured{object(time.Second, "a"), object(time.Hour, "a")}, cluster: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isNew(tc.objects, tc.cluster, now); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// dropClaim removes a claim despite its finalizer.
func (f *fixture) dropClaim(name string) {
	f.T.Helper()
	claim := f.NewClaim(f.Namespace, name)
	f.Edit(f.Workload, claim, func() { claim.SetFinalizers(nil) })
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		f.T.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, name)
}

// A claim deleted right after its creation, while the manager was killed, leaves nothing in the hub. Removing the
// finalizer by force keeps the object there, even a new one, if that was observed.
func TestCreationOfAClaimThatWentUnseenIsTakenBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("forced", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{fleetv1alpha1.DeletionPolicyAnnotation: "misspelt"})
	})
	f.WaitForPushed("forced")
	f.WaitForSynced("forced", fleetv1alpha1.ReasonSynced)
	claim := f.NewClaim(f.Namespace, "forced")
	f.Edit(f.Workload, claim, func() {})
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForSynced("forced", fleetv1alpha1.ReasonInvalidDeletionPolicy)
	f.Edit(f.Workload, claim, func() { claim.SetFinalizers(nil) })
	f.WaitForGone(f.Workload, f.Namespace, "forced")
	f.counts("its object is known to have no claim", 1)
	f.WaitForIdle()
	if hub, err := f.GetClaim(f.Hub, f.Target, "forced"); err != nil || hub.GetDeletionTimestamp() != nil {
		t.Errorf("want it left alone, got %v", err)
	}

	t.Log("a claim of the name takes it over, and its end counts again")
	f.CreateClaim("forced")
	f.WaitForSynced("forced", fleetv1alpha1.ReasonSynced)
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "forced")); err != nil {
		t.Errorf("want the claim to be there, got %v", err)
	}
	f.WaitForGone(f.Hub, f.Target, "forced")

	for _, name := range []string{"new", "changed", "old"} {
		f.CreateClaim(name)
		f.WaitForPushed(name)
		f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
	}
	changed := f.NewClaim(f.Namespace, "changed")
	f.Edit(f.Workload, changed, func() { _ = unstructured.SetNestedField(changed.Object, "8", "spec", "version") })
	f.Within("the change is carried", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "changed")
		if version, _, _ := unstructured.NestedString(hub.Object, "spec", "version"); err == nil && version != "8" {
			err = errors.New("it says " + version)
		}
		return err
	})
	f.WaitForIdle()
	f.stopAgent()
	old := f.NewClaim(f.Target, "old")
	f.Edit(f.Hub, old, func() { ownership.MarkCreated(old, time.Now().Add(-time.Hour)) })
	for _, name := range []string{"new", "changed", "old"} {
		f.dropClaim(name)
	}

	f.restart()
	f.WaitForGone(f.Hub, f.Target, "new")
	f.counts("of older ones, and of those whose claim lived to change them, an absence says nothing", 2)
	f.WaitForIdle()
	for _, name := range []string{"changed", "old"} {
		if hub, err := f.GetClaim(f.Hub, f.Target, name); err != nil || hub.GetDeletionTimestamp() != nil {
			t.Errorf("want %q left alone, got %v", name, err)
		}
	}
}
