// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/limits"
)

const (
	// TokenLife is the requested lifetime of a ServiceAccount's token.
	TokenLife = time.Hour

	// shortestAccountToken and longestAccountToken bound the accepted lifetime. API servers give ten minutes at least, and
	// no more than was requested; the rest is for clock skew. A shorter life would make Masthead ask the cluster all the
	// time, a longer one was not requested.
	shortestAccountToken = 5 * time.Minute
	longestAccountToken  = 2 * TokenLife

	// maxAccountToken is how long a token may be, in bytes. Kubernetes's have about one kilobyte.
	maxAccountToken = 16 << 10
)

// TokenError is why there is no token of a ServiceAccount. It repeats nothing that the cluster said.
type TokenError struct {
	Reason, Message string
	cause           error
}

// Error implements error.
func (e *TokenError) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *TokenError) Unwrap() error { return e.cause }

func invalidToken(what string, cause error) error {
	return &TokenError{
		fleetv1alpha1.ReasonServiceAccountTokenInvalid, "A token of the ServiceAccount was requested from the imported cluster, but " + what, cause,
	}
}

// UnavailableToken means that a token could not be requested from the cluster.
func UnavailableToken(cause error) error {
	return &TokenError{
		fleetv1alpha1.ReasonServiceAccountTokenUnavailable,
		fmt.Sprintf("A token of the ServiceAccount could not be requested from the imported cluster: %s", cause), cause,
	}
}

// Token requests a token of a ServiceAccount, for the API server itself. It is the only request by which the importer
// makes a cluster issue anything. The cluster stores nothing of it.
func (w *Client) Token(ctx context.Context, account fleetv1alpha1.ServiceAccountReference) (*oauth2.Token, error) {
	seconds := int64(TokenLife / time.Second)
	request := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}
	var answer struct {
		Status authenticationv1.TokenRequestStatus `json:"status"`
	}
	path := "/api/v1/namespaces/" + url.PathEscape(account.Namespace) + "/serviceaccounts/" + url.PathEscape(account.Name) + "/token"
	if err := w.request(ctx, http.MethodPost, path, request, &answer, maxReview); err != nil {
		return nil, withoutAccountToken(account, err)
	}
	token := answer.Status.Token
	unprintable := func(c byte) bool { return c <= ' ' || c > '~' }
	switch {
	case token == "":
		return nil, invalidToken("the cluster returned none", ErrNoToken)
	case len(token) > maxAccountToken || slices.ContainsFunc([]byte(token), unprintable):
		return nil, invalidToken("the returned one is not a valid token", ErrNoToken)
	case token == w.token:
		// They would be stored as the account's token, for everybody who may read that.
		return nil, invalidToken("the cluster returned the credentials with which it was requested", ErrNoToken)
	}
	return &oauth2.Token{AccessToken: token, Expiry: answer.Status.ExpirationTimestamp.Time}, nil
}

// withoutAccountToken returns why a request gave no token.
func withoutAccountToken(account fleetv1alpha1.ServiceAccountReference, err error) error {
	status, answered := errors.AsType[*StatusError](err)
	refused, bound := errors.AsType[*limits.Error](err)
	switch {
	case answered && status.code == http.StatusNotFound:
		return &TokenError{
			fleetv1alpha1.ReasonServiceAccountNotFound,
			fmt.Sprintf("The imported cluster has no ServiceAccount %q in the namespace %q", account.Name, account.Namespace), err,
		}
	case errors.Is(err, errRefused):
		return &TokenError{
			fleetv1alpha1.ReasonServiceAccountTokenRefused,
			fmt.Sprintf("The imported cluster refuses the credentials of the source: they need the right to create serviceaccounts/token for %q "+
				"in the namespace %q, and no other", account.Name, account.Namespace), err,
		}
	case answered && status.code < http.StatusInternalServerError && status.code != http.StatusTooManyRequests:
		return invalidToken(fmt.Sprintf("the cluster responded with the status %d", status.code), err)
	case bound && refused.Limit == limits.LimitSyntax, errors.Is(err, errUnreadable):
		return invalidToken("the answer cannot be read", err)
	default:
		// A truncated answer, or one without memory for it, says nothing about the spec either.
		return UnavailableToken(err)
	}
}

// AcceptToken checks that a token lives for about as long as was requested, and limits its use to that: the clock of
// the cluster can be ahead.
func AcceptToken(token *oauth2.Token, now time.Time) error {
	switch life := token.Expiry.Sub(now); {
	case token.Expiry.IsZero():
		return invalidToken("the cluster does not report when it expires", ErrNoToken)
	case life <= 0:
		return invalidToken("the returned one has expired", ErrNoToken)
	case life < shortestAccountToken:
		return invalidToken("the returned one expires within "+shortestAccountToken.String(), ErrNoToken)
	case life > longestAccountToken:
		return invalidToken("the returned one is valid for longer than was requested", ErrNoToken)
	}
	if latest := now.Add(TokenLife); token.Expiry.After(latest) {
		token.Expiry = latest
	}
	return nil
}

// ErrNoToken means that an answer has no usable token.
var ErrNoToken = errors.New("the token endpoint returns no token")
