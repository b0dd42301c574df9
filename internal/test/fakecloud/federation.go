// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// entraAudience is the audience of the tokens that are presented to Entra ID.
	entraAudience = "api://AzureADTokenExchange"

	// stsPath is the path at which Google exchanges tokens, and accountsPath the one at which it impersonates accounts.
	stsPath      = "/v1/token"
	accountsPath = "/v1/projects/-/serviceAccounts/"

	// longestShown is the longest lifetime of a token that is presented: the shortest that an API server allows.
	longestShown = 10 * time.Minute
)

// Hub is what a cloud knows of a Kubernetes cluster whose ServiceAccounts it trusts: its issuer and its public keys.
type Hub struct {
	issuer string
	keys   map[string]crypto.PublicKey
}

// NewHub reads the issuer and the keys of a cluster, as its OpenID discovery shows them.
func NewHub(ctx context.Context, config *rest.Config) (Hub, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Hub{}, fmt.Errorf("cannot create a client for %s: %w", config.Host, err)
	}
	var discovery struct {
		Issuer string `json:"issuer"`
	}
	var set struct {
		Keys []struct {
			ID       string `json:"kid"`
			Modulus  string `json:"n"`
			Exponent string `json:"e"`
			Curve    string `json:"crv"`
			X        string `json:"x"`
			Y        string `json:"y"`
		} `json:"keys"`
	}
	for path, into := range map[string]any{"/.well-known/openid-configuration": &discovery, "/openid/v1/jwks": &set} {
		content, err := clients.RESTClient().Get().AbsPath(path).Do(ctx).Raw()
		if err != nil {
			return Hub{}, fmt.Errorf("cannot read %s: %w", path, err)
		}
		if err := json.Unmarshal(content, into); err != nil {
			return Hub{}, fmt.Errorf("cannot decode %s: %w", path, err)
		}
	}
	h := Hub{issuer: discovery.Issuer, keys: map[string]crypto.PublicKey{}}
	for _, k := range set.Keys {
		switch {
		case k.Curve == "P-256":
			// A key that is none verifies nothing.
			if key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, decoded(k.X), decoded(k.Y))); err == nil {
				h.keys[k.ID] = key
			}
		case k.Modulus != "":
			h.keys[k.ID] = &rsa.PublicKey{N: number(k.Modulus), E: int(number(k.Exponent).Int64())}
		}
	}
	if h.issuer == "" || len(h.keys) == 0 {
		return Hub{}, fmt.Errorf("%s shows no issuer, or no key", config.Host)
	}
	return h, nil
}

// number decodes a number of a key.
func number(encoded string) *big.Int { return new(big.Int).SetBytes(decoded(encoded)) }

func decoded(encoded string) []byte {
	content, _ := base64.RawURLEncoding.DecodeString(encoded) // A key without a valid number verifies nothing.
	return content
}

// signed reports whether a key signed a text, with one of the two algorithms of API servers.
func signed(key crypto.PublicKey, algorithm, text string, signature []byte) bool {
	sum := sha256.Sum256([]byte(text))
	switch k := key.(type) {
	case *rsa.PublicKey:
		return algorithm == "RS256" && rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], signature) == nil
	case *ecdsa.PublicKey:
		return algorithm == "ES256" && len(signature) == 64 &&
			ecdsa.Verify(k, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
	default:
		return false
	}
}

// newSubject returns the name of a ServiceAccount in a token.
func newSubject(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// verify returns what is wrong with a token that is presented, or "" if nothing is. The token must be from the hub, of
// one ServiceAccount, for one audience and no other, and valid for ten minutes at most.
func (h Hub) verify(token, audience, subject string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "what is shown is no JWT"
	}
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	var claims struct {
		Issuer    string   `json:"iss"`
		Audience  []string `json:"aud"`
		Subject   string   `json:"sub"`
		Issued    int64    `json:"iat"`
		NotBefore int64    `json:"nbf"`
		Expires   int64    `json:"exp"`
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !decodePart(parts[0], &header) || !decodePart(parts[1], &claims) {
		return "what is shown is no JWT"
	}
	if !signed(h.keys[header.KeyID], header.Algorithm, parts[0]+"."+parts[1], signature) {
		return "the signature is not that of a key of the issuer"
	}
	now, expires := time.Now(), time.Unix(claims.Expires, 0)
	switch {
	case claims.Issuer != h.issuer:
		return "the issuer is another one"
	case !slices.Equal(claims.Audience, []string{audience}):
		return "the audience is another one, or not the only one"
	case claims.Subject != subject:
		return "the subject is another ServiceAccount"
	case !expires.After(now) || time.Unix(claims.NotBefore, 0).After(now.Add(time.Second)) || expires.Sub(time.Unix(claims.Issued, 0)) > longestShown:
		return "the token does not work now, or for too long"
	}
	return ""
}

// shows records the token that was presented last, if nothing was wrong with it.
func (e *TokenEndpoint) shows(token, problem string) string {
	if problem == "" {
		e.shown.Store(&token)
	}
	return problem
}

// Shown returns the last valid token of a ServiceAccount that was presented, or "" if there was none.
func (e *TokenEndpoint) Shown() string {
	if token := e.shown.Load(); token != nil {
		return *token
	}
	return ""
}

// AddPoolProvider makes a provider of a Google workload identity pool trust a ServiceAccount of a hub, and returns the
// URL at which its token is exchanged.
func (e *TokenEndpoint) AddPoolProvider(h Hub, provider, namespace, account string, token func(context.Context) (string, error)) (url string) {
	return e.add(tokenAccount{path: stsPath, token: token, issued: "urn:ietf:params:oauth:token-type:access_token", verify: e.poolProvider(h, provider, newSubject(namespace, account))})
}

func (e *TokenEndpoint) poolProvider(h Hub, provider, subject string) func(url.Values) string {
	return func(form url.Values) string {
		switch {
		case form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange":
			return "unsupported_grant_type"
		case form.Get("audience") != provider:
			return "invalid_target: there is no such provider"
		case form.Get("requested_token_type") != "urn:ietf:params:oauth:token-type:access_token",
			form.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:jwt":
			return "invalid_request: the type of a token is another one"
		case form.Get("scope") != googleScope:
			return "invalid_scope: the scope is not that of Google Cloud"
		case form.Has("client_id") || form.Has("client_secret"):
			return "invalid_client: there are no clients"
		}
		if problem := e.shows(form.Get("subject_token"), h.verify(form.Get("subject_token"), provider, subject)); problem != "" {
			return "invalid_grant: " + problem
		}
		return ""
	}
}

// AddImpersonation gives tokens of a Google service account to requests that present the token federated.
func (e *TokenEndpoint) AddImpersonation(email, federated string, token func(context.Context) (string, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.impersonations[accountsPath+email+":generateAccessToken"] = impersonation{federated: federated, token: token}
}

// impersonation defines which requests get tokens of a service account.
type impersonation struct {
	federated string
	token     func(context.Context) (string, error)
}

// impersonated answers a request for a token of a service account.
func (e *TokenEndpoint) impersonated(w http.ResponseWriter, r *http.Request, i impersonation) {
	var request struct {
		Scope    []string `json:"scope"`
		Lifetime string   `json:"lifetime"`
	}
	err := json.NewDecoder(r.Body).Decode(&request)
	switch {
	case r.Method != http.MethodPost || err != nil || request.Lifetime != "3600s" || !slices.Contains(request.Scope, googleScope):
		http.Error(w, "INVALID_ARGUMENT", http.StatusBadRequest)
		return
	case r.Header.Get("Authorization") != "Bearer "+i.federated:
		http.Error(w, "PERMISSION_DENIED", http.StatusForbidden)
		return
	}
	token, err := i.token(r.Context())
	if err != nil {
		http.Error(w, "no token", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"accessToken": token, "expireTime": time.Now().Add(time.Duration(e.lifetime) * time.Second).UTC().Format(time.RFC3339Nano),
	})
}

// AddFederatedCredential lets an Entra ID application get tokens by presenting, in place of its secret, the token of a
// ServiceAccount of a hub.
func (e *TokenEndpoint) AddFederatedCredential(h Hub, p ServicePrincipal, namespace, account string, token func(context.Context) (string, error)) {
	subject := newSubject(namespace, account)
	e.add(tokenAccount{path: "/" + p.TenantID + "/oauth2/v2.0/token", token: token, verify: func(form url.Values) string {
		switch {
		case form.Get("grant_type") != "client_credentials":
			return "unsupported_grant_type"
		case form.Get("client_id") != p.ClientID:
			return "unauthorized_client: there is no such application in the tenant"
		case form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || form.Has("client_secret"):
			return "invalid_client: an assertion is shown, and no secret"
		case form.Get("scope") != aksServerScope:
			return "invalid_scope: the scope is not that of AKS"
		}
		if problem := e.shows(form.Get("client_assertion"), h.verify(form.Get("client_assertion"), entraAudience, subject)); problem != "" {
			return "invalid_client: " + problem
		}
		return ""
	}})
}

// Always returns a function that always returns the same token.
func Always(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}
