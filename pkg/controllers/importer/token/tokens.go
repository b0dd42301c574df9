// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/oauth2/jwt"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/objects"
)

const (
	// tokenTimeout bounds a request to a token endpoint.
	tokenTimeout = 15 * time.Second

	// maxTokenAnswer is how large its answer may be, in bytes.
	maxTokenAnswer = 256 << 10

	// refreshBefore is how long before its end a token is replaced, at the latest when a third of its life is left.
	refreshBefore = 10 * time.Minute

	// maxFailed is how many failed requests are kept beyond those of the existing imports.
	maxFailed = 4096

	// shortestToken is the minimum lifetime of a token: a shorter one could not be used in time, and its endpoint would
	// get requests all the time. longestToken is the maximum trusted lifetime: Google's tokens have an hour, and up to
	// twelve on request, those of Entra ID up to a day.
	shortestToken = 5 * time.Second
	longestToken  = 24 * time.Hour

	// googleScope is the one that GKE's API servers ask for.
	googleScope = "https://www.googleapis.com/auth/cloud-platform"

	// azureServerScope is that of AKS's API servers with Entra ID, the same in every tenant.
	azureServerScope = "6dae42f8-4368-4678-94ff-3960e28e3630/.default"
)

// DefaultAllowedTokenEndpoints are those of Google and of Entra ID.
func DefaultAllowedTokenEndpoints() []string {
	return []string{
		"https://oauth2.googleapis.com/token", "https://login.microsoftonline.com/",
		fleetv1alpha1.ImportGoogleSTSEndpoint, fleetv1alpha1.ImportGoogleCredentialsEndpoint + googleAccountsPath,
	}
}

// ErrEndpointNotAllowed means that an endpoint is not allowed, so that no request was sent.
var ErrEndpointNotAllowed = errors.New("the token endpoint is not one of those that the operator allows with --allowed-token-endpoints")

// Request requests a token from an endpoint.
type Request struct {
	endpoint string
	// Hash distinguishes requests without holding their secrets.
	Hash string
	// Credentials identifies the requesting credentials where a token outlives them: a failed request is retried at once
	// with other ones.
	Credentials string
	Ask         func(ctx context.Context) (*oauth2.Token, error)
	// accept, if set, returns what is wrong with a token.
	Accept func(token *oauth2.Token, now time.Time) error
	// counts means that ask counts its requests, because it makes several.
	counts bool
}

// Tokens caches tokens by import. They are only in memory: a manager that starts requests new ones.
type Tokens struct {
	allowed Allowed
	client  *http.Client
	Clock   clock.Clock

	// requests counts the requests to endpoints.
	requests *prometheus.CounterVec

	mu     sync.Mutex
	made   map[types.NamespacedName]Made
	failed map[types.NamespacedName]failedRequest
}

// Made is a cached token.
type Made struct {
	Hash  string
	Token *oauth2.Token
	At    time.Time
}

// failedRequest is the last request of an import, if it failed.
type failedRequest struct {
	hash, credentials string
	err               error
	// times is how often in a row.
	times int
	// until is when the endpoint may be queried again.
	until time.Time
}

// New returns an empty cache. Only allowed endpoints are queried, and their certificates are verified with the
// authorities, as PEM, or with those of the system if there are none. An endpoint that is no URL is an error
// (ParseAllowed).
func New(allowed []string, authorities []byte, c clock.Clock) (*Tokens, error) {
	t := &Tokens{Clock: c, made: map[types.NamespacedName]Made{}, failed: map[types.NamespacedName]failedRequest{}}
	t.Register(nil)
	var err error
	if t.allowed, err = ParseAllowed(allowed); err != nil {
		return nil, err
	}
	roots := (*x509.CertPool)(nil)
	if len(authorities) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(authorities) {
			return nil, errors.New("cannot read the authorities of the token endpoints")
		}
	}
	t.client = &http.Client{
		Timeout: tokenTimeout,
		// A redirect would take the secret to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: boundedTransport{&http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: tokenTimeout, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		}},
	}
	return t, nil
}

// OfAccounts returns the cache for ServiceAccounts of imported clusters. Both share the metrics.
func (t *Tokens) OfAccounts() *Tokens {
	return &Tokens{
		Clock: t.Clock, requests: t.requests, made: map[types.NamespacedName]Made{}, failed: map[types.NamespacedName]failedRequest{},
	}
}

// Get returns a token and how soon to ask for it again. A working one is kept if there is no other. enter requests a
// place; without one no endpoint is queried. An endpoint that issues no token for a request is left alone for as
// long as an unreachable cluster, regardless of what triggers a pass over the import: another request, made of another
// secret, does not wait.
func (t *Tokens) Get(
	ctx context.Context, key types.NamespacedName, r Request, enter func() (leave func(), ok bool),
) (*oauth2.Token, time.Duration, error) {
	endpoint := t.allowed.Find(r.endpoint)
	if endpoint == nil {
		return nil, 0, ErrEndpointNotAllowed
	}
	return t.Renewed(ctx, key, r, endpoint.String(), enter)
}

// Renewed is Get for an endpoint that is known to be allowed, whose requests are counted under a name.
func (t *Tokens) Renewed(
	ctx context.Context, key types.NamespacedName, r Request, endpoint string, enter func() (leave func(), ok bool),
) (*oauth2.Token, time.Duration, error) {
	made, failed := t.last(key, r)
	now := t.Clock.Now()
	if made.Token != nil && now.Before(made.refresh()) {
		return made.Token, made.refresh().Sub(now), nil
	}
	if now.Before(failed.until) {
		return made.orElse(failed, now)
	}
	leave, ok := enter()
	switch {
	case !ok && made.works(now):
		return made.Token, workload.Retry, nil
	case !ok:
		return nil, 0, limits.ErrNoPlace
	}
	defer leave()
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, t.client), tokenTimeout)
	defer cancel()
	token, err := r.Ask(ctx)
	if hub, ok := errors.AsType[*HubError](err); ok { // No request was sent to the endpoint.
		return made.unlessRefused(hub.err, now)
	}
	if err == nil {
		err = r.check(token, now)
	}
	if !r.counts {
		t.requests.WithLabelValues(endpoint, metricResult(err)).Inc()
	}
	if err != nil {
		failed = failedRequest{
			hash: r.Hash, credentials: r.Credentials, err: refusal(err), times: failed.times + 1, until: now.Add(workload.LeftAloneFor(failed.times + 1)),
		}
		t.mu.Lock()
		t.failed[key] = failed
		t.mu.Unlock()
		return made.orElse(failed, now)
	}
	return token, t.keep(key, r, token, now).Sub(now), nil
}

// keep remembers a token, and returns when to request the next one.
func (t *Tokens) keep(key types.NamespacedName, r Request, token *oauth2.Token, now time.Time) (refresh time.Time) {
	if latest := now.Add(longestToken); token.Expiry.After(latest) {
		token.Expiry = latest
	}
	made := Made{Hash: r.Hash, Token: token, At: now}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made[key] = made
	delete(t.failed, key)
	return made.refresh()
}

// check returns what is wrong with an endpoint's answer, and converts its expiry to our clock.
func (r Request) check(token *oauth2.Token, now time.Time) error {
	if token.AccessToken == "" {
		return workload.ErrNoToken
	}
	if !token.Expiry.IsZero() {
		// The endpoint says for how long; the library counts from the machine's time.
		token.Expiry = now.Add(time.Until(token.Expiry)) //nolint:forbidigo // The library's expiry is of the machine's clock; it becomes one of ours here.
	}
	if r.Accept != nil {
		return r.Accept(token, now)
	}
	return sound(token, now)
}

// sound returns what is wrong with a token's lifetime.
func sound(token *oauth2.Token, now time.Time) error {
	if !token.Expiry.IsZero() && token.Expiry.Sub(now) < shortestToken {
		return workload.ErrNoToken
	}
	return nil
}

// last returns the results of an import's last requests, if they were the same.
func (t *Tokens) last(key types.NamespacedName, r Request) (made Made, failed failedRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.made[key]; m.Hash == r.Hash {
		made = m
	}
	if f := t.failed[key]; f.hash == r.Hash && f.credentials == r.Credentials {
		failed = f
	}
	return made, failed
}

// works reports whether there is a token that has not expired.
func (m Made) works(now time.Time) bool { return m.Token != nil && now.Before(m.Token.Expiry) }

// unlessRefused is the cached token, while it works, if the hub gave nothing to exchange for another one. A refusal is
// an answer: the right to the tokens is gone.
func (m Made) unlessRefused(err error, now time.Time) (*oauth2.Token, time.Duration, error) {
	if _, refused := errors.AsType[*condition.Error](err); refused || !m.works(now) {
		return nil, 0, err
	}
	return m.Token, workload.Retry, nil
}

// orElse is the cached token, while it works, if there is no other.
func (m Made) orElse(failed failedRequest, now time.Time) (*oauth2.Token, time.Duration, error) {
	if !m.works(now) {
		return nil, 0, failed.err
	}
	return m.Token, min(failed.until.Sub(now), m.Token.Expiry.Sub(now)), nil
}

// refresh is when a token is replaced.
func (m Made) refresh() time.Time {
	if m.Token.Expiry.IsZero() {
		return m.At.Add(refreshBefore)
	}
	return m.Token.Expiry.Add(-min(refreshBefore, m.Token.Expiry.Sub(m.At)/3))
}

// Knows reports whether an import has, or had, a token.
func (t *Tokens) Knows(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.made[key]
	return known
}

// Keep caches a token that was made elsewhere.
func (t *Tokens) Keep(key types.NamespacedName, m Made) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made[key] = m
}

// Drop discards a token that is at least that old.
func (t *Tokens) Drop(key types.NamespacedName, age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, known := t.made[key]; known && m.Token != nil && t.Clock.Since(m.At) >= age {
		t.made[key] = Made{Hash: m.Hash}
	}
}

// Forget is for an import that no longer uses tokens. An endpoint's failure is remembered until the endpoint may be
// queried again: withdrawing credentials, or deleting the import, and reverting that must not cause a request at once.
func (t *Tokens) Forget(key types.NamespacedName) {
	now := t.Clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.made, key)
	maps.DeleteFunc(t.failed, func(_ types.NamespacedName, f failedRequest) bool { return !now.Before(f.until.Add(workload.Resync)) })
	if f, ok := t.failed[key]; ok && (!now.Before(f.until) || len(t.failed) > maxFailed) {
		delete(t.failed, key)
	}
}

// refusal says why there is no token, without the endpoint's answer: it may repeat what it was sent.
func refusal(err error) error {
	if account, ok := errors.AsType[*workload.TokenError](err); ok {
		return account
	}
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.Response != nil {
		return fmt.Errorf("the token endpoint responds with the status %d", answer.Response.StatusCode)
	}
	return errors.New("the token endpoint cannot be reached, or returns no token")
}

// GoogleRequest requests a token with the key file of a service account. Key files of other types name programs, files
// and URLs to get a token from, and are refused.
func GoogleRequest(key []byte) (Request, error) {
	var file struct {
		Type         string `json:"type"`
		ClientEmail  string `json:"client_email"`
		PrivateKey   string `json:"private_key"`
		PrivateKeyID string `json:"private_key_id"`
		TokenURI     string `json:"token_uri"`
	}
	if err := json.Unmarshal(key, &file); err != nil {
		return Request{}, errors.New("the key of the Google service account is not JSON")
	}
	if file.Type != "service_account" {
		return Request{}, errors.New("the key of the Google service account is not of the type service_account")
	}
	c := &jwt.Config{
		Email: file.ClientEmail, PrivateKey: []byte(file.PrivateKey), PrivateKeyID: file.PrivateKeyID,
		Scopes: []string{googleScope, googleEmailScope}, TokenURL: file.TokenURI,
	}
	return Request{
		endpoint: file.TokenURI, Hash: objects.DigestParts(key),
		Ask: func(ctx context.Context) (*oauth2.Token, error) { return c.TokenSource(ctx).Token() },
	}, nil
}

// AzureRequest requests a token from Entra ID with the secret of a service principal.
func AzureRequest(a *fleetv1alpha1.AzureServicePrincipal, secret []byte) Request {
	c := &clientcredentials.Config{
		ClientID: a.ClientID, ClientSecret: strings.TrimSpace(string(secret)), Scopes: []string{azureServerScope},
		TokenURL:  EntraEndpoint(a),
		AuthStyle: oauth2.AuthStyleInParams,
	}
	return Request{
		endpoint: c.TokenURL, Hash: objects.DigestParts([]byte(c.TokenURL), []byte(a.ClientID), secret),
		Ask: c.Token,
	}
}

// EntraEndpoint is where a tenant's tokens are requested.
func EntraEndpoint(a *fleetv1alpha1.AzureServicePrincipal) string {
	authority := cmp.Or(string(a.AuthorityHost), "https://login.microsoftonline.com")
	return strings.TrimRight(authority, "/") + "/" + a.TenantID + "/oauth2/v2.0/token"
}

// boundedTransport aborts answers that are too large.
type boundedTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller's client wraps it.
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxTokenAnswer), resp.Body}
	return resp, nil
}

// HubError means that the hub issued no ServiceAccount token, so that no token endpoint was queried.
type HubError struct{ err error }

func (e *HubError) Error() string { return e.err.Error() }

// Unwrap is why.
func (e *HubError) Unwrap() error { return e.err }
