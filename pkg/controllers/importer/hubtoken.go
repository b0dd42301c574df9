// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
)

const (
	// hubTokenSeconds is the lifetime of a hub ServiceAccount's token: the shortest that an API server grants. It is used
	// once, immediately.
	hubTokenSeconds int64 = 600

	// maxHubToken is the maximum length of such a token, in bytes. Those of Kubernetes have about a thousand.
	maxHubToken = 16 << 10
)

// errHub means that a request to the hub failed, which says nothing about the import.
var errHub = errors.New("cannot ask the hub for a token")

// federatedRequest is the request that exchanges a token of the ServiceAccount that the spec names. Whether Masthead
// may still have that is checked in each pass, not only when a token is due: revoking the right withdraws the
// credentials.
func (r *kubeconfigs) federatedRequest(ctx context.Context, s *scope) (token.Request, error) {
	e, err := token.NewExchange(s.imp.Spec)
	if err != nil {
		return token.Request{}, noKubeconfig(fleetv1alpha1.ReasonTokenRefused, "%s", err)
	}
	if err := r.mayAskForTokens(ctx, s, e.Account); err != nil {
		return token.Request{}, err
	}
	request, err := r.tokens.ExchangeRequest(e, func(ctx context.Context) (string, error) { return r.hubToken(ctx, s, e.Account, e.Audience) })
	if err != nil {
		return token.Request{}, noKubeconfig(fleetv1alpha1.ReasonEndpointNotAllowed, "%s", err)
	}
	return request, nil
}

// mayAskForTokens checks whether Masthead has been granted the right to request tokens of a ServiceAccount in the
// namespace of the import, which none of Masthead's installed roles grants, and whether the ServiceAccount is for this
// import.
func (r *kubeconfigs) mayAskForTokens(ctx context.Context, s *scope, account string) error {
	allowed, err := r.isAllowed(ctx, authorizationv1.ResourceAttributes{
		Namespace: s.imp.Namespace, Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: account,
	})
	if err != nil {
		return err
	}
	if !allowed {
		return notGranted(account)
	}
	return r.mayUseAccount(ctx, s, account)
}

// mayUseAccount checks that a hub ServiceAccount has the label by which its owner allows imports to use it. The grant
// alone would allow everybody who may write a ClusterImport in the namespace, for a cluster of theirs.
func (r *kubeconfigs) mayUseAccount(ctx context.Context, s *scope, account string) error {
	there := &corev1.ServiceAccount{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: s.imp.Namespace, Name: account}, there)
	switch {
	case apierrors.IsForbidden(err):
		return notGranted(account)
	case apierrors.IsNotFound(err):
		return noHubAccount(account)
	case err != nil:
		return fmt.Errorf("cannot get ServiceAccount %q: %w", account, err)
	case !mayUse(there, s.imp):
		return withdrawn(fleetv1alpha1.ReasonCredentialsNotAllowed,
			"The ServiceAccount %q is not for this ClusterImport, and no token of it is requested: give it the label %s=%s", account,
			fleetv1alpha1.ImportCredentialsLabel, s.imp.UID)
	}
	return nil
}

// noHubAccount is the error for a missing ServiceAccount that the spec names.
func noHubAccount(account string) error {
	return withdrawn(fleetv1alpha1.ReasonHubServiceAccountNotFound, "There is no ServiceAccount %q in the namespace of the ClusterImport", account)
}

// hubToken requests a token of a ServiceAccount in the namespace of the import, for one audience. A token with any
// other audience is never sent: the hub itself could accept it.
func (r *kubeconfigs) hubToken(ctx context.Context, s *scope, account, audience string) (string, error) {
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.imp.Namespace, Name: account}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: new(hubTokenSeconds),
	}}
	err := r.hub.SubResource("token").Create(ctx, of, request)
	switch token := request.Status.Token; {
	case apierrors.IsForbidden(err):
		return "", notGranted(account)
	case apierrors.IsNotFound(err):
		return "", noHubAccount(account)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "", noKubeconfig(fleetv1alpha1.ReasonTokenRefused, "The hub refuses a token of the ServiceAccount %q: %s", account, err)
	case err != nil:
		return "", fmt.Errorf("%w of ServiceAccount %q: %w", errHub, account, err)
	case token == "" || len(token) > maxHubToken || !slices.Equal(request.Spec.Audiences, []string{audience}):
		return "", noKubeconfig(fleetv1alpha1.ReasonTokenRefused, "The hub returns a token of the ServiceAccount %q that is not the one that was requested", account)
	default:
		return token, nil
	}
}

// notGranted names the missing right, and who grants it.
func notGranted(account string) error {
	return withdrawn(fleetv1alpha1.ReasonHubServiceAccountNotAllowed,
		"Masthead may not get the ServiceAccount %q and create serviceaccounts/token for it: grant both with a Role that has the "+
			"resourceNames [%s], in the namespace of the ClusterImport, as in config/samples/imports/workload-identity.yaml", account, account)
}
