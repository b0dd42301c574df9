// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenLifetime is the shortest that API servers accept.
const tokenLifetime = 10 * time.Minute

// Token requests a token of a ServiceAccount of the hub, valid for a few minutes.
func (h *Hub) Token(ctx context.Context, account client.ObjectKey) (string, error) {
	token, _, err := requestToken(ctx, h.core, account, tokenLifetime)
	return token, err
}

// NewToken requests a token of a ServiceAccount of the cluster of a configuration, and returns its expiry.
func NewToken(ctx context.Context, cfg *rest.Config, account client.ObjectKey, lifetime time.Duration) (_ string, ends time.Time, _ error) {
	core, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return "", ends, fmt.Errorf("cannot create a client: %w", err)
	}
	return requestToken(ctx, core, account, lifetime)
}

func requestToken(ctx context.Context, core corev1client.CoreV1Interface, account client.ObjectKey, lifetime time.Duration) (_ string, ends time.Time, _ error) {
	answer, err := core.ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime.Seconds()))},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", ends, fmt.Errorf("cannot get a token of the ServiceAccount %q: %w", account, err)
	}
	return answer.Status.Token, answer.Status.ExpirationTimestamp.Time, nil
}
