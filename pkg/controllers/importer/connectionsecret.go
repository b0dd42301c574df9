// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// connectionSecret reads a key of the connection Secret of the import's managed resource.
func (r *kubeconfigs) connectionSecret(ctx context.Context, s *scope, obs observation, key string) ([]byte, error) {
	secret, err := r.getConnectionSecret(ctx, s, obs)
	if err != nil {
		return nil, err
	}
	if content := secret.Data[key]; len(content) > 0 {
		return content, nil
	}
	return nil, noKubeconfig(fleetv1alpha1.ReasonCredentialsNotFound, "The Crossplane provider publishes no %s", key)
}

// removeConnectionSecret deletes the Secret that a managed resource has published for a source that the spec no longer
// names: that of AKS has the administrator's kubeconfig, and its provider deletes it only with the managed resource of
// the cluster, which stays. As long as one asks for the Secret, because something stops the import, the provider would
// write it again.
func (r *kubeconfigs) removeConnectionSecret(ctx context.Context, s *scope, obs observation) (res result, err error) {
	if slices.ContainsFunc(obs.managed, publishes) {
		return res, nil
	}
	secret, err := r.getConnectionSecret(ctx, s, obs)
	if isProblem(err) {
		return res, nil // There is none, or it is not ours.
	}
	if err != nil {
		return res, err
	}
	if secret.DeletionTimestamp.IsZero() {
		err = r.remove(ctx, secret)
	}
	// A provider that was at work may write it once more, and a finalizer or a policy keep it: Secrets are not watched.
	res.again = workload.Retry
	if isRefused(err) {
		res.fail(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigNotRequested,
			"The spec requests no kubeconfig; the provider's Secret %q cannot be deleted: %s", secret.Name, wordsOf(err))
		return res, nil
	}
	return res, err
}

func publishes(m *unstructured.Unstructured) bool {
	_, asks, _ := unstructured.NestedMap(m.Object, "spec", "writeConnectionSecretToRef")
	return asks
}

// getConnectionSecret reads the connection Secret of the import's managed resource. It counts only if that managed
// resource controls it: anybody could use its name.
func (r *kubeconfigs) getConnectionSecret(ctx context.Context, s *scope, obs observation) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	name := ownership.ConnectionSecretName(s.imp)
	err := r.live.Get(ctx, client.ObjectKey{Namespace: s.imp.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, noKubeconfig(fleetv1alpha1.ReasonCredentialsNotFound, "The Crossplane provider has not published credentials yet")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get Secret %q: %w", name, err)
	}
	controller := metav1.GetControllerOf(secret)
	for _, m := range obs.managed {
		if controller != nil && controller.UID == m.GetUID() {
			return secret, nil
		}
	}
	return nil, noKubeconfig(fleetv1alpha1.ReasonCredentialsNotFound, "The Secret %q is not that of the import's managed resources; it is left alone", name)
}

// publishedCluster is the cluster of the provider's published kubeconfig. AKS publishes the API server's authority and
// port nowhere else. It is empty if the kubeconfig names none. The kubeconfig's user, which may be a program to run, is
// ignored.
func (r *kubeconfigs) publishedCluster(ctx context.Context, s *scope, obs observation) (*clientcmdapi.Cluster, error) {
	given, err := r.connectionSecret(ctx, s, obs, providerKubeconfigKey)
	if err != nil {
		return nil, err
	}
	unreadable := noKubeconfig(fleetv1alpha1.ReasonKubeconfigRefused, "The provider's kubeconfig cannot be read")
	if len(given) > credentials.MaxSize {
		return nil, unreadable
	}
	file, err := clientcmd.Load(given)
	if err != nil {
		return nil, unreadable
	}
	published := clientcmdapi.NewCluster()
	if current := file.Contexts[file.CurrentContext]; current != nil {
		published = cmp.Or(file.Clusters[current.Cluster], published)
	}
	return published, nil
}
