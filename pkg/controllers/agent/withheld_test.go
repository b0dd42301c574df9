// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// noSecret waits until the workload cluster has no Secret of a name.
func (f *fixture) noSecret(name string) {
	f.T.Helper()
	f.Within("there is no Secret "+name, func() error {
		err := f.workload.Get(f.Ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("there is one"))
	})
}

func TestComposedSecretThatIsLabelledStaysInTheHub(t *testing.T) {
	t.Parallel()
	f := newCompositeFixture(t)
	refs := []any{
		map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "master"}, map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "app"},
	}
	_, hub := f.cache("cache", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, refs, "spec", "crossplane", "resourceRefs")
	})
	master := f.compose("master", hub, "secret", func(s *corev1.Secret) { s.Labels[fleetv1alpha1.DeliverLabel] = "false" })
	app := f.compose("app", hub, "one")
	f.composed(hub, "app", "master")
	f.Within("what is not labelled arrives", f.secretIs("app", "one"))
	f.cacheSynced("cache", reason.ReasonSynced)
	f.settled()
	f.noSecret("master")
	if got := f.hubRequests.about("GET", "/secrets/master"); len(got) != 0 {
		t.Errorf("want the Secret never to be read, got %v", got)
	}

	// Its author can revise this, in both directions.
	f.Edit(f.hub, app, func() { app.Labels[fleetv1alpha1.DeliverLabel] = "false" })
	f.noSecret("app")
	f.Edit(f.hub, master, func() { delete(master.Labels, fleetv1alpha1.DeliverLabel) })
	f.Within("what is not labelled any more arrives", f.secretIs("master", "secret"))
}

func TestConnectionSecretThatIsLabelledStaysInTheHub(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.claim("db", withSecret("db-conn"))
	secret := f.connectionSecret("db-conn", f.pushed("db"), "one")
	f.ready("db", "a")
	f.Within("the connection Secret arrives", func() error {
		return f.workload.Get(f.Ctx, types.NamespacedName{Namespace: f.namespace, Name: "db-conn"}, &corev1.Secret{})
	})
	f.Edit(f.hub, secret, func() { secret.Labels = map[string]string{fleetv1alpha1.DeliverLabel: "false"} })
	f.noSecret("db-conn")
	f.synced("db", reason.ReasonSecretWithheld)
}
