// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
)

// away changes the workload cluster while it is un-enrolled.
func (f *fixture) away(what func()) {
	f.T.Helper()
	f.WaitForIdle()
	fakefleet.Drain(f.T, f.manager.Gate, f.Cluster)
	if err := f.fleet.Offboard(f.Ctx, f.Cluster); err != nil {
		f.T.Fatal(err)
	}
	f.disengageCluster()
	what()
	f.engage()
}

// recreateNamespace deletes the fixture's namespace in the workload cluster, and creates another one of that name.
func (f *fixture) recreateNamespace() {
	f.T.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
	if err := f.Workload.Delete(f.Ctx, ns); err != nil {
		f.T.Fatal(err)
	}
	// Normally a controller does this, which does not run here.
	f.Within("the namespace is finalised", func() error {
		if err := f.Workload.Get(f.Ctx, types.NamespacedName{Name: f.Namespace}, ns); err != nil {
			return err
		}
		ns.Spec.Finalizers = nil
		return f.Workload.SubResource("finalize").Update(f.Ctx, ns)
	})
	f.Create(f.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}})
}

func TestNamespaceThatWasMadeAgainDoesNotInherit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	hub := f.WaitForPushed("db")
	f.CreateConnectionSecret("db-conn", hub, "one")
	f.MarkReady("db", "a")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.away(func() {
		if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
			t.Fatal(err)
		}
		f.WaitForGone(f.Workload, f.Namespace, "db")
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "db-conn"}}
		if err := f.Workload.Delete(f.Ctx, s); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		f.recreateNamespace()
	})

	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	f.WaitForMessage("db", fleetv1alpha1.ReasonNamespaceRecreated, fleetv1alpha1.AdoptableByAnnotation)
	f.WaitForIdle()
	if err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: "db-conn"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("want no Secret of the team before, got %v", err)
	}
	// Nor can the successor take the object over by itself, or have it deleted by forging a finalizer.
	f.AnnotateClaim("db", fleetv1alpha1.AdoptAnnotation, "true")
	claim := f.NewClaim(f.Namespace, "db")
	f.Edit(f.Workload, claim, func() { claim.SetFinalizers([]string{fleetv1alpha1.RequirementFinalizer}) })
	f.WaitForIdle()
	f.WaitForSynced("db", fleetv1alpha1.ReasonNamespaceRecreated)
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	if now, err := f.GetClaim(f.Hub, f.Target, "db"); err != nil || now.GetUID() != hub.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Fatalf("want the object of the namespace before to stay, got %v (%v)", now.Object, err)
	}

	// The hub's administrator can.
	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	f.WaitForSynced("db", fleetv1alpha1.ReasonNamespaceRecreated)
	f.Edit(f.Hub, hub, func() {
		annotations := hub.GetAnnotations()
		annotations[fleetv1alpha1.AdoptableByAnnotation] = f.source().String()
		hub.SetAnnotations(annotations)
	})
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	if now := f.WaitForPushed("db"); now.GetUID() != hub.GetUID() || now.GetAnnotations()[fleetv1alpha1.AdoptableByAnnotation] != "" {
		t.Errorf("want the same object, and the consent used up, got %v", now.Object["metadata"])
	}
}
