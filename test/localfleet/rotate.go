// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewKubeconfig returns a kubeconfig for a workload cluster with a new token of the service account
// masthead-system/masthead. The hub does not get the token, and Rotate does not revoke it.
func (f *Fleet) NewKubeconfig(ctx context.Context, workload string) ([]byte, error) {
	c, unlock, err := f.lockCluster(ctx, workload)
	if err != nil {
		return nil, err
	}
	defer unlock()
	kubeconfig, _, err := c.mintKubeconfig(ctx)
	return kubeconfig, err
}

func (c *cluster) mintKubeconfig(ctx context.Context) ([]byte, boundToken, error) {
	config, err := c.adminConfig()
	if err != nil {
		return nil, boundToken{}, err
	}
	token, err := mintToken(ctx, config)
	if err != nil {
		return nil, boundToken{}, fmt.Errorf("cluster %q: %w", c.name, err)
	}
	e, err := c.endpoint()
	if err != nil {
		return nil, boundToken{}, err
	}
	kubeconfig, err := tokenKubeconfig(c.name, ServiceAccountName, e, token.token)
	return kubeconfig, token, err
}

// Rotate replaces the credentials with which the hub reaches a workload cluster: each kubeconfig Secret in the hub gets
// a new token, then the old one is revoked. The workload cluster's API server may accept a revoked token for about ten
// seconds.
func (f *Fleet) Rotate(ctx context.Context, name string) error {
	if name == HubName {
		return errors.New("the hub has no credentials that could be rotated; name a workload cluster")
	}
	c, unlock, err := f.lockCluster(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	hub, secrets, err := f.kubeconfigSecrets(ctx, name)
	if err != nil {
		return err
	}
	if len(secrets) == 0 {
		return fmt.Errorf("cannot rotate the credentials of cluster %q: no Secret in the hub leads to it", name)
	}
	config, err := c.adminConfig()
	if err != nil {
		return err
	}
	for i := range secrets {
		secret := &secrets[i]
		kubeconfig, token, err := c.mintKubeconfig(ctx)
		if err != nil {
			return err
		}
		old := secret.Annotations[boundSecretAnnotation]
		secret.Annotations[boundSecretAnnotation] = token.secret
		secret.Data[secretKey] = kubeconfig
		if _, err := hub.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: string(fieldManager)}); err != nil {
			return fmt.Errorf("cannot update Secret %s/%s in the hub: %w", secret.Namespace, secret.Name, err)
		}
		if err := revokeToken(ctx, config, old); err != nil {
			return err
		}
	}
	return nil
}
