// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// SecretIs reports whether a Secret in the workload cluster has a password; none if that is empty.
func (f *Fixture) SecretIs(name, password string) func() error {
	return func() error {
		s := &corev1.Secret{}
		err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: name}, s)
		if password == "" && apierrors.IsNotFound(err) {
			return nil
		}
		if got := string(s.Data["password"]); err != nil || got != password {
			return fmt.Errorf("want the password %q, got %q (%w)", password, got, errors.Join(err, errors.New("not equal")))
		}
		return nil
	}
}

// CreateClaimWithCopiedSecret creates a claim whose connection Secret is in the workload cluster.
func (f *Fixture) CreateClaimWithCopiedSecret() (claim, hub *unstructured.Unstructured, source *corev1.Secret) {
	f.T.Helper()
	claim = f.CreateClaim("db", WithSecret("db-conn"))
	hub = f.WaitForPushed("db")
	source = f.CreateConnectionSecret("db-conn", hub, "one")
	f.MarkReady("db", "a")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.Within("the Secret arrives", f.SecretIs("db-conn", "one"))
	f.WaitForIdle()
	return claim, hub, source
}

// CreateOrphan creates what `kubectl delete --cascade=orphan` of its claim leaves of a copy, under another name, and
// immutable if that is wanted.
func (f *Fixture) CreateOrphan(name, as string, immutable bool) {
	f.T.Helper()
	s := &corev1.Secret{}
	if err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: name}, s); err != nil {
		f.T.Fatal(err)
	}
	f.Create(f.Workload, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: as, Labels: s.Labels, Annotations: s.Annotations},
		Type:       s.Type, Data: map[string][]byte{"password": []byte("of what is gone")}, Immutable: &immutable,
	})
}

// WaitForController waits until an object controls a Secret in the workload cluster.
func (f *Fixture) WaitForController(claim *unstructured.Unstructured, name string) {
	f.T.Helper()
	s := &corev1.Secret{}
	f.Within("the owner of "+name, func() error {
		if err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: name}, s); err != nil {
			return err
		}
		if !metav1.IsControlledBy(s, claim) {
			return fmt.Errorf("got %v", s.OwnerReferences)
		}
		return nil
	})
}

// WithSecret lets a claim ask for its connection Secret.
func WithSecret(name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, name, "spec", "writeConnectionSecretToRef", "name")
	}
}

// CreateConnectionSecret publishes connection details as Crossplane does: in a Secret that the owner controls.
func (f *Fixture) CreateConnectionSecret(name string, owner *unstructured.Unstructured, password string) *corev1.Secret {
	f.T.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Target, Name: name},
		Type:       crossplane.SecretTypeConnection, Data: map[string][]byte{"password": []byte(password)},
	}
	if owner != nil {
		s.Namespace = owner.GetNamespace()
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	}
	f.Create(f.Hub, s)
	return s
}
