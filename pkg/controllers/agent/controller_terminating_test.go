// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// An API server alone has no controller that empties a terminating namespace: the test does that.
func TestNamespaceDeletedInTheWorkloadClusterGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.claim("early", withSecret("early-conn"))
	f.claim("late", withSecret("late-conn"))
	early, late := f.pushed("early"), f.pushed("late")
	f.connectionSecret("early-conn", early, "one")
	f.ready("early", "a")
	f.synced("early", fleetv1alpha1.ReasonSynced)

	if err := f.workload.Delete(f.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}); err != nil {
		t.Fatal(err)
	}
	f.Within("nothing can be created in the namespace any more", func() error {
		err := f.workload.Create(f.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"}}, client.DryRunAll)
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return errors.New("it can")
		}
		return nil
	})

	// A Secret that arrives now cannot be written. That is reported, and blocks nothing.
	f.connectionSecret("late-conn", late, "two")
	f.ready("late", "b")
	f.synced("late", fleetv1alpha1.ReasonSecretRejected)

	for _, name := range []string{"early", "late"} {
		if err := f.workload.Delete(f.Ctx, f.object(f.namespace, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"early", "late"} {
		f.gone(f.workload, f.namespace, name)
		f.gone(f.hub, f.target, name)
	}
}
