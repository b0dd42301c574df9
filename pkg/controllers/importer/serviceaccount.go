// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/oauth2"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/objects"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// leastCredentials is the kubeconfig for the Secret: what the source gives, or, if the spec names a ServiceAccount of
// the imported cluster, a token of that one. It never falls back from the second to the first: a user who requests a
// token with few rights gets it or nothing, and a Secret that still holds other credentials is removed.
func (r *kubeconfigs) leastCredentials(ctx context.Context, s *scope, obs observation) (kubeconfig, error) {
	k, err := r.credentials(ctx, s, obs)
	k.account = s.imp.Spec.ServiceAccount()
	switch {
	case k.account == nil:
		r.accounts.Forget(s.key())
	case err == nil:
		k, err = r.accountKubeconfig(ctx, s, k)
	default:
		k, err = r.whileTheSourceFails(ctx, s, k, err)
	}
	if err != nil {
		k.content = nil // It may be the source's.
		return k, r.withdrawingOthers(ctx, s, err)
	}
	return k, nil
}

// whileTheSourceFails is the kubeconfig with the account's token from the Secret, for as long as that works: the failed
// source is needed only to request another one. Withdrawn credentials do not count.
func (r *kubeconfigs) whileTheSourceFails(ctx context.Context, s *scope, k kubeconfig, why error) (kubeconfig, error) {
	problem, ok := errors.AsType[*condition.Error](why)
	if !ok || isWithdrawn(why) {
		return k, why
	}
	secret, err := r.ownKubeconfig(ctx, s)
	if client.IgnoreNotFound(err) != nil {
		return k, errors.Join(why, err)
	}
	if err != nil || !isWanted(s, secret) {
		return k, why
	}
	now := r.accounts.Clock.Now()
	expires, works := accountExpiry(secret, now)
	if _, err := credentials.Parse(secret.Data[kubeconfigKey], r.creds); err != nil || !works {
		return k, why
	}
	k.content, k.expires, k.sourceFails = secret.Data[kubeconfigKey], expires, problem.Message
	k.again = condition.MinNonZero(k.again, min(r.lacking.next(s, problem, now), expires.Sub(now)))
	return k, nil
}

// accountKubeconfig is a kubeconfig with the server and the authority of the source's, and a token of the account.
func (r *kubeconfigs) accountKubeconfig(ctx context.Context, s *scope, k kubeconfig) (kubeconfig, error) {
	cluster, err := parseCluster(k.content, r.creds)
	if err != nil {
		return k, err
	}
	request := r.accountRequest(s, k, cluster)
	if err := r.recoverToken(ctx, s, cluster, request); err != nil {
		return k, err
	}
	token, again, err := r.accounts.Renewed(ctx, s.key(), request, token.ImportedClusters, r.enter(s, &k.waits))
	var refused *workload.TokenError
	switch {
	case errors.As(err, &refused):
		return k, noKubeconfig(refused.Reason, "%s", refused.Message)
	case err != nil:
		return k, err // It waits for its turn.
	}
	if k.content, err = encoded(cluster, &clientcmdapi.AuthInfo{Token: token.AccessToken}); err != nil {
		return k, err
	}
	if _, err := credentials.Parse(k.content, r.creds); err != nil {
		return k, noKubeconfig(fleetv1alpha1.ReasonServiceAccountTokenInvalid, "%s", err)
	}
	k.expires, k.again = token.Expiry, condition.MinNonZero(k.again, again)
	return k, nil
}

// parseCluster is the address of a kubeconfig's API server, and its authority.
func parseCluster(kubeconfig []byte, o credentials.Options) (*clientcmdapi.Cluster, error) {
	parsed, err := credentials.Parse(kubeconfig, o)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	c := parsed.RESTConfig()
	return &clientcmdapi.Cluster{
		Server: parsed.Host(), CertificateAuthorityData: c.CAData, TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure,
	}, nil
}

// accountRequest requests a token from the API server of a cluster. A token is only for this server, identified by its
// authority: none is ever sent to another one. It outlives the credentials that requested it, which rotate more often,
// but not their source: the withdrawal of a source that the spec no longer names would not be noticed.
func (r *kubeconfigs) accountRequest(s *scope, source kubeconfig, cluster *clientcmdapi.Cluster) token.Request {
	return token.Request{
		Hash: objects.DigestParts(
			[]byte(s.imp.UID), []byte(describeSource(s.imp.Spec)), []byte(source.account.Namespace), []byte(source.account.Name),
			[]byte(cluster.Server), cluster.CertificateAuthorityData, []byte(cluster.TLSServerName), []byte(strconv.FormatBool(cluster.InsecureSkipTLSVerify)),
		),
		Credentials: objects.DigestParts(source.content),
		Ask: func(ctx context.Context) (*oauth2.Token, error) {
			w, err := r.clusters.Client(s.imp.Namespace, source.content, r.creds)
			if err != nil {
				return nil, workload.UnavailableToken(err)
			}
			defer w.Close()
			return w.Token(ctx, *source.account)
		},
		Accept: workload.AcceptToken,
	}
}

// recoverToken recovers the token from the Secret that an earlier process wrote. It is trusted if the kubeconfig is,
// byte by byte, the one that this process would write with it. Keeping tokens only in memory was rejected: a starting
// manager would ask every imported cluster at once, and report missing credentials for unreachable ones although they
// exist. A user who may change the Secret, which is as good as reading it, gains nothing: the token is sent to the
// cluster that the source names, and is replaced within the hour.
func (r *kubeconfigs) recoverToken(ctx context.Context, s *scope, cluster *clientcmdapi.Cluster, request token.Request) error {
	if r.accounts.Knows(s.key()) {
		return nil
	}
	secret, err := r.ownKubeconfig(ctx, s)
	if err != nil || !isWanted(s, secret) {
		return client.IgnoreNotFound(err)
	}
	expires, works := accountExpiry(secret, r.accounts.Clock.Now())
	var held string // A Secret that is not understood holds none, and is replaced.
	if parsed, err := credentials.Parse(secret.Data[kubeconfigKey], r.creds); err == nil {
		held = parsed.Token()
	}
	if !works || held == "" {
		return nil
	}
	again, err := encoded(cluster, &clientcmdapi.AuthInfo{Token: held})
	if err != nil || !bytes.Equal(again, secret.Data[kubeconfigKey]) {
		return err
	}
	r.accounts.Keep(s.key(), token.Made{Hash: request.Hash, Token: &oauth2.Token{AccessToken: held, Expiry: expires}, At: expires.Add(-workload.TokenLife)})
	return nil
}
