// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/bounded"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

const (
	// accountTokenLife is for how long a token of a ServiceAccount is asked for.
	accountTokenLife = time.Hour

	// shortestAccountToken and longestAccountToken bound what is accepted. API servers give ten minutes at least, and no
	// more than was asked for; the rest is for clocks that differ. A shorter life would have the cluster be asked all the
	// time, a longer one would be a token that nobody asked for.
	shortestAccountToken = 5 * time.Minute
	longestAccountToken  = 2 * accountTokenLife

	// maxAccountToken is how long a token may be, in bytes. Kubernetes's have about one kilobyte.
	maxAccountToken = 16 << 10
)

// leastCredentials is the kubeconfig that the Secret is to hold: what the source gives, or, if the spec names a
// ServiceAccount of the imported cluster, a token of that one. There is no way from the second back to the first: who
// asks for a token of few rights gets it or nothing, and a Secret that still holds other credentials goes.
func (r *Reconciler) leastCredentials(ctx context.Context, p *pass) ([]byte, error) {
	content, err := r.credentials(ctx, p)
	account := p.imp.Spec.ServiceAccount()
	switch {
	case account == nil:
		r.accounts.forget(p.key())
	case err == nil:
		content, err = r.accountKubeconfig(ctx, p, *account, content)
	default:
		content, err = r.whileTheSourceFails(ctx, p, err)
	}
	if err != nil {
		return nil, r.withdrawingOthers(ctx, p, err)
	}
	p.account = account
	return content, nil
}

// whileTheSourceFails is the kubeconfig with the token of the account that the Secret holds, for as long as that works:
// the source, which gives nothing to ask for another one with, has done its part. What is withdrawn is none of it.
func (r *Reconciler) whileTheSourceFails(ctx context.Context, p *pass, why error) ([]byte, error) {
	refused, stops := errors.AsType[*stopError](why)
	if !stops || refused.withdrawn {
		return nil, why
	}
	secret, err := r.ownKubeconfig(ctx, p)
	if err != nil {
		return nil, errors.Join(why, err)
	}
	if secret == nil || !p.isWanted(secret) {
		return nil, why
	}
	now := r.accounts.clock.Now()
	expires, works := accountExpiry(secret, now)
	if _, err := credentials.Parse(secret.Data[kubeconfigKey], r.creds); err != nil || !works {
		return nil, why
	}
	p.expires, p.sourceFails = expires, refused.condition.Message
	p.requeueSoon(min(r.lacking.next(p, refused.condition, now), expires.Sub(now)))
	return secret.Data[kubeconfigKey], nil
}

// accountKubeconfig is a kubeconfig with the server and the authority of the source's, and a token of the account.
func (r *Reconciler) accountKubeconfig(ctx context.Context, p *pass, account fleetv1alpha1.ServiceAccountReference, source []byte) ([]byte, error) {
	cluster, err := clusterOf(source, r.creds)
	if err != nil {
		return nil, err
	}
	request := r.accountRequest(p, account, cluster, source)
	if err := r.recoverToken(ctx, p, cluster, request); err != nil {
		return nil, err
	}
	token, again, err := r.accounts.renewed(ctx, p.key(), request, importedClusters, func() (func(), bool) { return r.enter(p) })
	var refused *accountError
	switch {
	case errors.As(err, &refused):
		return nil, noKubeconfig(refused.reason, "%s", refused.message)
	case err != nil:
		return nil, err // It waits for its turn.
	}
	content, err := encoded(cluster, &clientcmdapi.AuthInfo{Token: token.AccessToken})
	if err != nil {
		return nil, err
	}
	if _, err := credentials.Parse(content, r.creds); err != nil {
		return nil, noKubeconfig(fleetv1alpha1.ReasonServiceAccountTokenInvalid, "%s", err)
	}
	p.expires = token.Expiry
	p.requeueSoon(again)
	return content, nil
}

// clusterOf is where the API server of a kubeconfig is, and its authority.
func clusterOf(kubeconfig []byte, o credentials.Options) (*clientcmdapi.Cluster, error) {
	parsed, err := credentials.Parse(kubeconfig, o)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	c := parsed.RESTConfig()
	return &clientcmdapi.Cluster{
		Server: parsed.Host(), CertificateAuthorityData: c.CAData, TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure,
	}, nil
}

// accountRequest asks the API server of a cluster for a token. A token counts for this server alone, by its authority:
// none is ever sent to another one. It outlives the credentials with which it was asked for, which rotate more often,
// but not their source: who withdraws one that the spec does not name any more is noticed by nobody.
func (r *Reconciler) accountRequest(
	p *pass, account fleetv1alpha1.ServiceAccountReference, cluster *clientcmdapi.Cluster, source []byte,
) tokenRequest {
	return tokenRequest{
		hash: hashOf(
			[]byte(p.imp.UID), []byte(sourceOf(p.imp.Spec)), []byte(account.Namespace), []byte(account.Name), []byte(cluster.Server), cluster.CertificateAuthorityData,
			[]byte(cluster.TLSServerName), []byte(strconv.FormatBool(cluster.InsecureSkipTLSVerify)),
		),
		credentials: hashOf(source),
		ask: func(ctx context.Context) (*oauth2.Token, error) {
			w, err := newWorkload(source, r.creds)
			if err != nil {
				return nil, unavailableToken(err)
			}
			defer w.close()
			w.open = func(abort func(error)) bounded.Account { return r.clusters.memory.hold(p.imp.Namespace, abort) }
			return w.accountToken(ctx, account)
		},
		accept: acceptAccountToken,
	}
}

// accountError is why there is no token of a ServiceAccount. It repeats nothing that the cluster said.
type accountError struct {
	reason, message string
	cause           error
}

// Error implements error.
func (e *accountError) Error() string { return e.message }

// Unwrap gives the cause.
func (e *accountError) Unwrap() error { return e.cause }

func invalidToken(what string, cause error) error {
	return &accountError{
		fleetv1alpha1.ReasonServiceAccountTokenInvalid, "The imported cluster was asked for a token of the ServiceAccount, and " + what, cause,
	}
}

func unavailableToken(cause error) error {
	return &accountError{
		fleetv1alpha1.ReasonServiceAccountTokenUnavailable,
		fmt.Sprintf("The imported cluster could not be asked for a token of the ServiceAccount: %s", cause), cause,
	}
}

// accountToken asks for a token of a ServiceAccount, for the API server itself. It is the only request by which the
// importer has a cluster make anything. The cluster keeps nothing of it.
func (w *workload) accountToken(ctx context.Context, account fleetv1alpha1.ServiceAccountReference) (*oauth2.Token, error) {
	seconds := int64(accountTokenLife / time.Second)
	request := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}
	var answer struct {
		Status authenticationv1.TokenRequestStatus `json:"status"`
	}
	path := "/api/v1/namespaces/" + url.PathEscape(account.Namespace) + "/serviceaccounts/" + url.PathEscape(account.Name) + "/token"
	if err := w.ask(ctx, http.MethodPost, path, request, &answer, maxReview); err != nil {
		return nil, withoutAccountToken(account, err)
	}
	token := answer.Status.Token
	unprintable := func(c byte) bool { return c <= ' ' || c > '~' }
	switch {
	case token == "":
		return nil, invalidToken("gives none", errNoToken)
	case len(token) > maxAccountToken || slices.ContainsFunc([]byte(token), unprintable):
		return nil, invalidToken("what it gives is none", errNoToken)
	case token == w.token:
		// They would be kept as those of the account, for everybody who may read these.
		return nil, invalidToken("gives the credentials back with which it was asked", errNoToken)
	}
	return &oauth2.Token{AccessToken: token, Expiry: answer.Status.ExpirationTimestamp.Time}, nil
}

// withoutAccountToken says why a request gave no token.
func withoutAccountToken(account fleetv1alpha1.ServiceAccountReference, err error) error {
	status, answered := errors.AsType[*statusError](err)
	refused, bound := errors.AsType[*bounded.Error](err)
	switch {
	case answered && status.code == http.StatusNotFound:
		return &accountError{
			fleetv1alpha1.ReasonServiceAccountNotFound,
			fmt.Sprintf("The imported cluster has no ServiceAccount %q in the namespace %q", account.Name, account.Namespace), err,
		}
	case errors.Is(err, errRefused):
		return &accountError{
			fleetv1alpha1.ReasonServiceAccountTokenRefused,
			fmt.Sprintf("The imported cluster refuses the credentials of the source: they need the right to create serviceaccounts/token for %q "+
				"in the namespace %q, and no other", account.Name, account.Namespace), err,
		}
	case answered && status.code < http.StatusInternalServerError && status.code != http.StatusTooManyRequests:
		return invalidToken(fmt.Sprintf("answers with the status %d", status.code), err)
	case bound && refused.Limit == bounded.LimitSyntax, errors.Is(err, errUnreadable):
		return invalidToken("the answer cannot be read", err)
	default:
		// So does an answer that broke off, or for which there is no room, say nothing of the spec.
		return unavailableToken(err)
	}
}

// acceptAccountToken sees that a token lives for about as long as was asked for, and has it be replaced by then at the
// latest: the clock of the cluster can be ahead.
func acceptAccountToken(token *oauth2.Token, now time.Time) error {
	switch life := token.Expiry.Sub(now); {
	case token.Expiry.IsZero():
		return invalidToken("does not say when it expires", errNoToken)
	case life <= 0:
		return invalidToken("gives one that has expired", errNoToken)
	case life < shortestAccountToken:
		return invalidToken("gives one that expires within "+shortestAccountToken.String(), errNoToken)
	case life > longestAccountToken:
		return invalidToken("gives one that works for longer than was asked for", errNoToken)
	}
	if latest := now.Add(accountTokenLife); token.Expiry.After(latest) {
		token.Expiry = latest
	}
	return nil
}

// recoverToken takes the token out of the Secret that an earlier process wrote. It is believed if the kubeconfig is,
// byte by byte, the one that this process would write with it. Tokens in memory alone were rejected here: a manager
// that starts would ask every imported cluster at once, and where one cannot be asked just then, would say that there
// are no credentials, although there are. Whoever may change the Secret, which is as good as to read it, gains nothing:
// the token goes to the cluster that the source names, and is replaced within the hour.
func (r *Reconciler) recoverToken(ctx context.Context, p *pass, cluster *clientcmdapi.Cluster, request tokenRequest) error {
	if r.accounts.knows(p.key()) {
		return nil
	}
	secret, err := r.ownKubeconfig(ctx, p)
	if err != nil || secret == nil || !p.isWanted(secret) {
		return err
	}
	expires, works := accountExpiry(secret, r.accounts.clock.Now())
	if !works {
		return nil
	}
	parsed, err := credentials.Parse(secret.Data[kubeconfigKey], r.creds)
	if err != nil {
		return nil //nolint:nilerr // What is not understood is replaced.
	}
	again, err := encoded(cluster, &clientcmdapi.AuthInfo{Token: parsed.Token()})
	if err != nil || !bytes.Equal(again, secret.Data[kubeconfigKey]) {
		return err
	}
	r.accounts.keep(p.key(), madeToken{hash: request.hash, token: &oauth2.Token{AccessToken: parsed.Token(), Expiry: expires}, at: expires.Add(-accountTokenLife)})
	return nil
}

// ownKubeconfig is the Secret with the kubeconfig, if it is there and the import's.
func (r *Reconciler) ownKubeconfig(ctx context.Context, p *pass) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: p.imp.Namespace, Name: kubeconfigName(p.imp)}, secret)
	if apierrors.IsNotFound(err) || err == nil && !p.isOurs(secret) {
		return nil, nil //nolint:nilnil // There is none.
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get Secret %q: %w", kubeconfigName(p.imp), err)
	}
	return secret, nil
}

// refusedToken has the next look ask for another token where the cluster does not know the one that it gave: its
// ServiceAccount was deleted, and perhaps made anew. A token counts for a while whatever is said of it: a cluster must
// not have itself be asked all the time.
func (r *Reconciler) refusedToken(p *pass) {
	if p.account != nil {
		r.accounts.drop(p.key(), resync)
	}
}
