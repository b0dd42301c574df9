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
	"github.com/masthead-dev/masthead/internal/test/agenttest"
)

// An API server alone has no controller that empties a terminating namespace: the test does that.
func TestNamespaceDeletedInTheWorkloadClusterGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("early", agenttest.WithSecret("early-conn"))
	f.CreateClaim("late", agenttest.WithSecret("late-conn"))
	early, late := f.WaitForPushed("early"), f.WaitForPushed("late")
	f.CreateConnectionSecret("early-conn", early, "one")
	f.MarkReady("early", "a")
	f.WaitForSynced("early", fleetv1alpha1.ReasonSynced)

	if err := f.Workload.Delete(f.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}); err != nil {
		t.Fatal(err)
	}
	f.Within("nothing can be created in the namespace any more", func() error {
		err := f.Workload.Create(f.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "probe"}}, client.DryRunAll)
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return errors.New("it can")
		}
		return nil
	})

	// A Secret that arrives now cannot be written. That is reported, and blocks nothing.
	f.CreateConnectionSecret("late-conn", late, "two")
	f.MarkReady("late", "b")
	f.WaitForSynced("late", fleetv1alpha1.ReasonSecretRejected)

	for _, name := range []string{"early", "late"} {
		if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"early", "late"} {
		f.WaitForGone(f.Workload, f.Namespace, name)
		f.WaitForGone(f.Hub, f.Target, name)
	}
}
