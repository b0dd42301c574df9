// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// The service account in each workload cluster whose token the hub gets.
const (
	ServiceAccountNamespace = "masthead-system"
	ServiceAccountName      = "masthead"
)

// tokenLifetime is longer than any fleet lives. Tokens are revoked, not left to expire.
const tokenLifetime = 365 * 24 * time.Hour

// boundToken is a token that is valid while the Secret that it is bound to exists.
type boundToken struct{ token, secret string }

// ensureServiceAccount creates the service account and its namespace if they do not exist.
func ensureServiceAccount(ctx context.Context, config *rest.Config) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ServiceAccountNamespace},
	}}
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount",
		"metadata": map[string]any{"name": ServiceAccountName, "namespace": ServiceAccountNamespace},
	}}
	return applyObjects(ctx, config, []*unstructured.Unstructured{namespace, account})
}

// mintToken requests a new token from the workload cluster. Tokens cannot be revoked one by one, but a token that is
// bound to an object becomes invalid with it. Therefore each token gets its own empty Secret.
func mintToken(ctx context.Context, config *rest.Config) (boundToken, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return boundToken{}, fmt.Errorf("cannot create a client for %s: %w", config.Host, err)
	}
	secret, err := client.CoreV1().Secrets(ServiceAccountNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: ServiceAccountName + "-token-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return boundToken{}, fmt.Errorf("cannot create the Secret that a token is to be bound to: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLifetime / time.Second)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID,
		},
	}}
	response, err := client.CoreV1().ServiceAccounts(ServiceAccountNamespace).
		CreateToken(ctx, ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return boundToken{}, fmt.Errorf("cannot get a token of %s/%s: %w", ServiceAccountNamespace, ServiceAccountName, err)
	}
	return boundToken{token: response.Status.Token, secret: secret.Name}, nil
}

// revokeToken deletes the Secret that a token is bound to. The API server may accept the token for about ten more
// seconds, for as long as it caches that the token was valid.
func revokeToken(ctx context.Context, config *rest.Config, secret string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot create a client for %s: %w", config.Host, err)
	}
	err = client.CoreV1().Secrets(ServiceAccountNamespace).Delete(ctx, secret, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot delete the Secret %q that the old token is bound to: %w", secret, err)
	}
	return nil
}
