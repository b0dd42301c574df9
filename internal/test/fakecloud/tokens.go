// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
)

// TokenEndpoint simulates the token endpoints of Google and of Entra ID. Each account gets tokens for one cluster.
type TokenEndpoint struct {
	server *httptest.Server
	// lifetime is for how many seconds a token is valid according to the endpoint.
	lifetime int

	// shown is the last valid token of a ServiceAccount that was presented.
	shown atomic.Pointer[string]

	mu       sync.Mutex
	accounts []*tokenAccount
	// impersonations are the impersonations of Google service accounts, by path.
	impersonations map[string]impersonation
}

// tokenAccount is an account to which the endpoint gives tokens at a path.
type tokenAccount struct {
	path string
	// verify returns what is wrong with a request, in the terms of OAuth 2, or "" if nothing is.
	verify func(form url.Values) (problem string)
	token  func(context.Context) (string, error)
	// issued is the type of the issued token, if tokens are exchanged.
	issued string
	// revoked makes the endpoint refuse every request for the account.
	revoked bool
}

// NewTokenEndpoint starts an endpoint on this machine, whose tokens are valid for lifetime seconds.
func NewTokenEndpoint(lifetime int) *TokenEndpoint {
	e := &TokenEndpoint{lifetime: lifetime, impersonations: map[string]impersonation{}}
	e.server = httptest.NewTLSServer(e)
	return e
}

// Close stops the endpoint.
func (e *TokenEndpoint) Close() { e.server.Close() }

// URL is the URL at which the endpoint listens.
func (e *TokenEndpoint) URL() string { return e.server.URL }

// Authority is the CA of the endpoint's certificate, PEM.
func (e *TokenEndpoint) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw})
}

// Revoke stops giving tokens to the accounts at a path, as if their keys were deleted.
func (e *TokenEndpoint) Revoke(path string) { e.setRevoked(path, true) }

// Restore undoes Revoke.
func (e *TokenEndpoint) Restore(path string) { e.setRevoked(path, false) }

func (e *TokenEndpoint) setRevoked(path string, revoked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.accounts {
		if a.path == path {
			a.revoked = revoked
		}
	}
}

// add lets an account get tokens at a path, and returns the URL of the path.
func (e *TokenEndpoint) add(a tokenAccount) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accounts = append(e.accounts, &a)
	return e.server.URL + a.path
}

// find returns the account that a request is for, or what is wrong with the request.
func (e *TokenEndpoint) find(path string, form url.Values) (found *tokenAccount, problem string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	problem = "there is no account at this path"
	for _, a := range e.accounts {
		if a.path != path {
			continue
		}
		if problem = a.verify(form); problem == "" && a.revoked {
			problem = "invalid_grant: the account is disabled"
		}
		if problem == "" {
			return a, ""
		}
	}
	return nil, problem
}

// ServeHTTP answers requests that present the assertion of a service account, the secret of a service principal, or the
// token of a ServiceAccount. A request that Google or Entra ID would refuse is refused.
func (e *TokenEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	i, impersonates := e.impersonations[r.URL.Path]
	e.mu.Unlock()
	if impersonates {
		e.impersonated(w, r, i)
		return
	}
	if err := r.ParseForm(); err != nil || r.Method != http.MethodPost {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	account, problem := e.find(r.URL.Path, r.PostForm)
	if problem != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": problem})
		return
	}
	token, err := account.token(r.Context())
	if err != nil {
		http.Error(w, "no token", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": e.lifetime}
	if account.issued != "" {
		answer["issued_token_type"] = account.issued
	}
	_ = json.NewEncoder(w).Encode(answer)
}
