// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
)

// ownKubeconfig is the Secret with the kubeconfig. One that is not the import's counts as not found.
func (r *kubeconfigs) ownKubeconfig(ctx context.Context, s *scope) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: s.imp.Namespace, Name: ownership.KubeconfigName(s.imp)}, secret)
	if err == nil && !ownership.MarkedBy(secret, s.wanted) {
		err = apierrors.NewNotFound(corev1.Resource("secrets"), secret.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get Secret %q: %w", ownership.KubeconfigName(s.imp), err)
	}
	return secret, nil
}

// writeKubeconfig writes the Secret. It stays the same object when a token changes, so that its users need not
// reconnect.
func (r *kubeconfigs) writeKubeconfig(ctx context.Context, s *scope, k kubeconfig) error {
	labels := ownership.Marks(s.imp)
	labels[clusterv1.ClusterNameLabel] = s.imp.Name
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.imp.Namespace, Name: ownership.KubeconfigName(s.imp), Labels: labels},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{kubeconfigKey: k.content},
	}
	mark(s, k, want)
	there := &corev1.Secret{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(want), there)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.hub.Create(ctx, want, client.FieldOwner(fleetv1alpha1.ImportFieldManager)); err != nil {
			return fmt.Errorf("cannot create Secret %q: %w", want.Name, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("cannot get Secret %q: %w", want.Name, err)
	case !ownership.MarkedBy(there, s.wanted):
		return nameTaken("Secret", want.Name)
	}
	changed := there.DeepCopy()
	changed.Data = want.Data
	maps.Copy(changed.Labels, labels)
	mark(s, k, changed)
	if equality.Semantic.DeepEqual(there, changed) {
		return nil
	}
	if err := r.hub.Update(ctx, changed, client.FieldOwner(fleetv1alpha1.ImportFieldManager)); err != nil {
		return fmt.Errorf("cannot update Secret %q: %w", want.Name, err)
	}
	return nil
}

// removeKubeconfig removes the credentials from Cluster API core, and returns how many Secrets are left. With a foreign
// finalizer the Secret still exists, and core can still read it.
func (r *kubeconfigs) removeKubeconfig(ctx context.Context, s *scope) (int, error) {
	secret, err := r.ownKubeconfig(ctx, s)
	if err == nil && secret.DeletionTimestamp.IsZero() {
		if err := r.remove(ctx, secret); err != nil {
			return 0, err
		}
		_, err = r.ownKubeconfig(ctx, s)
	}
	if err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	return 1, nil
}
