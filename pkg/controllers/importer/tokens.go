// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/oauth2/jwt"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

const (
	// tokenTimeout is how long a token endpoint may take.
	tokenTimeout = 15 * time.Second

	// maxTokenAnswer is how large its answer may be, in bytes.
	maxTokenAnswer = 256 << 10

	// refreshBefore is how long before its end a token is replaced, at the latest when a third of its life is left.
	refreshBefore = 10 * time.Minute

	// googleScope is the one that GKE's API servers ask for.
	googleScope = "https://www.googleapis.com/auth/cloud-platform"

	// azureServerScope is that of AKS's API servers with Entra ID, the same in every tenant.
	azureServerScope = "6dae42f8-4368-4678-94ff-3960e28e3630/.default"
)

// DefaultAllowedTokenEndpoints are those of Google and of Entra ID.
func DefaultAllowedTokenEndpoints() []string {
	return []string{"https://oauth2.googleapis.com/token", "https://login.microsoftonline.com/"}
}

var errEndpointNotAllowed = errors.New("the token endpoint is none of those that the operator allows by --allowed-token-endpoints")

// tokenRequest asks an endpoint for a token.
type tokenRequest struct {
	endpoint string
	// hash tells requests apart without holding their secrets.
	hash string
	ask  func(ctx context.Context) (*oauth2.Token, error)
}

// tokens are those that were made, by import. They are in memory alone: a manager that starts makes new ones.
type tokens struct {
	allowed []*url.URL
	client  *http.Client
	clock   clock.Clock

	mu   sync.Mutex
	made map[types.NamespacedName]madeToken
}

type madeToken struct {
	hash  string
	token *oauth2.Token
	at    time.Time
}

func newTokens(allowed []string, authorities []byte, c clock.Clock) (*tokens, error) {
	t := &tokens{clock: c, made: map[types.NamespacedName]madeToken{}}
	for _, endpoint := range allowed {
		u, err := ParseTokenEndpoint(endpoint)
		if err != nil {
			return nil, err
		}
		t.allowed = append(t.allowed, u)
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

// ParseTokenEndpoint reads a URL that an operator allows tokens to be asked for at.
func ParseTokenEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an https URL without user, query and fragment", endpoint)
	}
	return u, nil
}

// allows says whether tokens may be asked for at an endpoint.
func (t *tokens) allows(endpoint string) bool {
	u, err := ParseTokenEndpoint(endpoint)
	if err != nil || strings.Contains(u.Path, "..") || u.RawPath != "" {
		return false
	}
	for _, a := range t.allowed {
		path := a.Path == u.Path || strings.HasSuffix(a.Path, "/") && strings.HasPrefix(u.Path, a.Path)
		if strings.EqualFold(a.Host, u.Host) && path {
			return true
		}
	}
	return false
}

// get returns a token and how soon it should be asked for again. One that still works is kept if there is no other.
// enter asks for a place; without one no endpoint is asked.
func (t *tokens) get(
	ctx context.Context, key types.NamespacedName, r tokenRequest, enter func() (leave func(), ok bool),
) (*oauth2.Token, time.Duration, error) {
	if !t.allows(r.endpoint) {
		return nil, 0, errEndpointNotAllowed
	}
	t.mu.Lock()
	made := t.made[key]
	t.mu.Unlock()
	if made.hash != r.hash {
		made = madeToken{}
	}
	now := t.clock.Now()
	if made.token != nil && now.Before(made.refresh()) {
		return made.token, made.refresh().Sub(now), nil
	}
	works := made.token != nil && now.Before(made.token.Expiry)
	leave, ok := enter()
	switch {
	case !ok && works:
		return made.token, retry, nil
	case !ok:
		return nil, 0, errNoPlace
	}
	defer leave()
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, t.client), tokenTimeout)
	defer cancel()
	token, err := r.ask(ctx)
	if err != nil || token.AccessToken == "" {
		if works {
			return made.token, retry, nil
		}
		return nil, 0, refusal(err)
	}
	if !token.Expiry.IsZero() {
		// The endpoint says for how long; the library counts from the machine's time.
		token.Expiry = now.Add(time.Until(token.Expiry)) //nolint:forbidigo // The library's expiry is of the machine's clock; it becomes one of ours here.
	}
	made = madeToken{hash: r.hash, token: token, at: now}
	t.mu.Lock()
	t.made[key] = made
	t.mu.Unlock()
	return token, made.refresh().Sub(now), nil
}

// refresh is when a token is replaced.
func (m madeToken) refresh() time.Time {
	if m.token.Expiry.IsZero() {
		return m.at.Add(refreshBefore)
	}
	return m.token.Expiry.Add(-min(refreshBefore, m.token.Expiry.Sub(m.at)/3))
}

func (t *tokens) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.made, key)
}

// refusal says why there is no token, without what the endpoint sent: it may repeat what it was sent.
func refusal(err error) error {
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.Response != nil {
		return fmt.Errorf("the token endpoint answers with the status %d", answer.Response.StatusCode)
	}
	return errors.New("the token endpoint cannot be reached, or gives no token")
}

// googleRequest asks for a token with the key file of a service account. Key files of other types name programs, files
// and URLs to get a token from, and are refused.
func googleRequest(key []byte) (tokenRequest, error) {
	var file struct {
		Type         string `json:"type"`
		ClientEmail  string `json:"client_email"`
		PrivateKey   string `json:"private_key"`
		PrivateKeyID string `json:"private_key_id"`
		TokenURI     string `json:"token_uri"`
	}
	if err := json.Unmarshal(key, &file); err != nil {
		return tokenRequest{}, errors.New("the key of the Google service account is not JSON")
	}
	if file.Type != "service_account" {
		return tokenRequest{}, errors.New("the key of the Google service account is not of the type service_account")
	}
	c := &jwt.Config{
		Email: file.ClientEmail, PrivateKey: []byte(file.PrivateKey), PrivateKeyID: file.PrivateKeyID,
		Scopes: []string{googleScope}, TokenURL: file.TokenURI,
	}
	return tokenRequest{
		endpoint: file.TokenURI, hash: hashOf(key),
		ask: func(ctx context.Context) (*oauth2.Token, error) { return c.TokenSource(ctx).Token() },
	}, nil
}

// azureRequest asks Entra ID for a token with the secret of a service principal.
func azureRequest(a *fleetv1alpha1.AzureServicePrincipal, secret []byte) tokenRequest {
	authority := a.AuthorityHost
	if authority == "" {
		authority = "https://login.microsoftonline.com"
	}
	c := &clientcredentials.Config{
		ClientID: a.ClientID, ClientSecret: strings.TrimSpace(string(secret)), Scopes: []string{azureServerScope},
		TokenURL:  strings.TrimRight(authority, "/") + "/" + a.TenantID + "/oauth2/v2.0/token",
		AuthStyle: oauth2.AuthStyleInParams,
	}
	return tokenRequest{
		endpoint: c.TokenURL, hash: hashOf([]byte(c.TokenURL), []byte(a.ClientID), secret),
		ask: c.Token,
	}
}

func hashOf(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":"))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// boundedTransport ends answers that are too large.
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
