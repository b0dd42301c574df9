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
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
)

// away changes the workload cluster while it is un-enrolled.
func (f *fixture) away(what func()) {
	f.T.Helper()
	f.settled()
	fakefleet.Drain(f.T, f.manager.Gate, f.cluster)
	if err := f.fleet.Offboard(f.Ctx, f.cluster); err != nil {
		f.T.Fatal(err)
	}
	f.disengageCluster()
	what()
	f.engage()
}

// recreateNamespace deletes the fixture's namespace in the workload cluster, and creates another one of that name.
func (f *fixture) recreateNamespace() {
	f.T.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	if err := f.workload.Delete(f.Ctx, ns); err != nil {
		f.T.Fatal(err)
	}
	// Normally a controller does this, which does not run here.
	f.Within("the namespace is finalised", func() error {
		if err := f.workload.Get(f.Ctx, types.NamespacedName{Name: f.namespace}, ns); err != nil {
			return err
		}
		ns.Spec.Finalizers = nil
		return f.workload.SubResource("finalize").Update(f.Ctx, ns)
	})
	f.Create(f.workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
}

func TestNamespaceThatWasMadeAgainDoesNotInherit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.claim("db", withSecret("db-conn"))
	hub := f.pushed("db")
	f.connectionSecret("db-conn", hub, "one")
	f.ready("db", "a")
	f.synced("db", fleetv1alpha1.ReasonSynced)
	f.away(func() {
		if err := f.workload.Delete(f.Ctx, f.object(f.namespace, "db")); err != nil {
			t.Fatal(err)
		}
		f.gone(f.workload, f.namespace, "db")
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db-conn"}}
		if err := f.workload.Delete(f.Ctx, s); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		f.recreateNamespace()
	})

	f.claim("db", withSecret("db-conn"))
	f.says("db", fleetv1alpha1.ReasonNamespaceRecreated, fleetv1alpha1.AdoptableByAnnotation)
	f.settled()
	if err := f.workload.Get(f.Ctx, types.NamespacedName{Namespace: f.namespace, Name: "db-conn"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("want no Secret of the team before, got %v", err)
	}
	// Nor can the successor take the object over by itself, or have it deleted by forging a finalizer.
	f.annotateClaim("db", fleetv1alpha1.AdoptAnnotation, "true")
	claim := f.object(f.namespace, "db")
	f.Edit(f.workload, claim, func() { claim.SetFinalizers([]string{fleetv1alpha1.RequirementFinalizer}) })
	f.settled()
	f.synced("db", fleetv1alpha1.ReasonNamespaceRecreated)
	if err := f.workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")
	if now, err := f.get(f.hub, f.target, "db"); err != nil || now.GetUID() != hub.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Fatalf("want the object of the namespace before to stay, got %v (%v)", now.Object, err)
	}

	// The hub's administrator can.
	f.claim("db", withSecret("db-conn"))
	f.synced("db", fleetv1alpha1.ReasonNamespaceRecreated)
	f.Edit(f.hub, hub, func() {
		annotations := hub.GetAnnotations()
		annotations[fleetv1alpha1.AdoptableByAnnotation] = f.source().String()
		hub.SetAnnotations(annotations)
	})
	f.synced("db", fleetv1alpha1.ReasonSynced)
	if now := f.pushed("db"); now.GetUID() != hub.GetUID() || now.GetAnnotations()[fleetv1alpha1.AdoptableByAnnotation] != "" {
		t.Errorf("want the same object, and the consent used up, got %v", now.Object["metadata"])
	}
}
