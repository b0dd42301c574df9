// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
)

// ClientSecret is that of every service principal.
const ClientSecret = "of-the-service-principal"

// TokenEndpoint plays the token endpoints of Google and of Entra ID. Each path gives tokens for one cluster.
type TokenEndpoint struct {
	server *httptest.Server
	// lifetime is how many seconds a token works, says the endpoint.
	lifetime int

	mu     sync.Mutex
	issuer map[string]func(context.Context) (string, error)
}

// NewTokenEndpoint starts an endpoint on this machine, whose tokens work for so many seconds.
func NewTokenEndpoint(lifetime int) *TokenEndpoint {
	e := &TokenEndpoint{lifetime: lifetime, issuer: map[string]func(context.Context) (string, error){}}
	e.server = httptest.NewTLSServer(e)
	return e
}

// Close ends it.
func (e *TokenEndpoint) Close() { e.server.Close() }

// URL is where it listens.
func (e *TokenEndpoint) URL() string { return e.server.URL }

// Authority is the CA of its certificate, PEM.
func (e *TokenEndpoint) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw})
}

// Issue has a path give tokens, and returns its URL.
func (e *TokenEndpoint) Issue(path string, token func(context.Context) (string, error)) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.issuer[path] = token
	return e.server.URL + path
}

// ServeHTTP answers those who show the assertion of a service account, or the secret of a service principal.
func (e *TokenEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	issue := e.issuer[r.URL.Path]
	e.mu.Unlock()
	if issue == nil {
		http.NotFound(w, r)
		return
	}
	if err := r.ParseForm(); err != nil || r.Form.Get("assertion") == "" && r.Form.Get("client_secret") != ClientSecret {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	token, err := issue(r.Context())
	if err != nil {
		http.Error(w, "no token", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, token, e.lifetime)
}

// GoogleKey is the key file of a service account of Google's that gets its tokens at a URL.
func GoogleKey(tokenURI string) ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "reader@project.iam.gserviceaccount.com", "token_uri": tokenURI,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key file: %w", err)
	}
	return content, nil
}
