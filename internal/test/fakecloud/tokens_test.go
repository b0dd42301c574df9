// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/masthead-dev/masthead/internal/test/fakecloud"
)

// post requests a token from an endpoint, and returns the status of the answer.
func post(t *testing.T, e *fakecloud.TokenEndpoint, path string, form url.Values) int {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.Authority())
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL()+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

func endpoint(t *testing.T) *fakecloud.TokenEndpoint {
	t.Helper()
	e := fakecloud.NewTokenEndpoint(60)
	t.Cleanup(e.Close)
	return e
}

func aToken(context.Context) (string, error) { return "t", nil }

// privateKey returns the key in a Google key file.
func privateKey(t *testing.T, file []byte, err error) *rsa.PrivateKey {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]string
	if err := json.Unmarshal(file, &content); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(content["private_key"]))
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.(*rsa.PrivateKey)
}

// assertion is a JWT.
func assertion(t *testing.T, algorithm string, claims map[string]any, key *rsa.PrivateKey) string {
	t.Helper()
	encoded := make([]string, 0, 3)
	for _, part := range []any{map[string]string{"alg": algorithm, "typ": "JWT"}, claims} {
		content, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, base64.RawURLEncoding.EncodeToString(content))
	}
	sum := sha256.Sum256([]byte(strings.Join(encoded, ".")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(encoded, base64.RawURLEncoding.EncodeToString(signature)), ".")
}

// TestGoogleRefusesOtherAssertions: an endpoint that accepted everything would not show who sends it requests.
func TestGoogleRefusesOtherAssertions(t *testing.T) {
	e := endpoint(t)
	file, err := e.GoogleKey("/token", aToken)
	key := privateKey(t, file, err)
	file, err = fakecloud.GoogleKey(e.URL() + "/token")
	another := privateKey(t, file, err)
	now := time.Now()
	good := map[string]any{
		"iss": "reader@project.iam.gserviceaccount.com", "aud": e.URL() + "/token", "scope": "https://www.googleapis.com/auth/cloud-platform https://www.googleapis.com/auth/userinfo.email",
		"iat": now.Add(-10 * time.Second).Unix(), "exp": now.Add(50 * time.Minute).Unix(),
	}
	for name, tc := range map[string]struct {
		reason    string
		claims    map[string]any
		key       *rsa.PrivateKey
		algorithm string
		grant     string
		want      int
	}{
		"Good":         {reason: "It is what a service account shows.", want: http.StatusOK},
		"OtherKey":     {reason: "The key is not the account's.", key: another},
		"NoSignature":  {reason: "An unsigned one proves nothing.", algorithm: "none"},
		"OtherAccount": {reason: "Another account has other rights.", claims: map[string]any{"iss": "owner@project.iam.gserviceaccount.com"}},
		"OtherHost":    {reason: "It was made for another endpoint.", claims: map[string]any{"aud": "https://oauth2.googleapis.com/token"}},
		"OtherScope":   {reason: "Kubernetes Engine takes no such token.", claims: map[string]any{"scope": "https://www.googleapis.com/auth/drive"}},
		"NoEmail":      {reason: "RBAC names accounts by e-mail.", claims: map[string]any{"scope": "https://www.googleapis.com/auth/cloud-platform"}},
		"NoScope":      {reason: "Without a scope there is no token.", claims: map[string]any{"scope": ""}},
		"Expired":      {reason: "It counts no more.", claims: map[string]any{"exp": now.Add(-time.Minute).Unix()}},
		"TooLong":      {reason: "An hour is the longest.", claims: map[string]any{"exp": now.Add(2 * time.Hour).Unix()}},
		"NotYet":       {reason: "It does not count yet.", claims: map[string]any{"iat": now.Add(10 * time.Minute).Unix()}},
		"OtherGrant":   {reason: "It is not a request with an assertion.", grant: "client_credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			claims := maps.Clone(good)
			maps.Copy(claims, tc.claims)
			signer, algorithm, grant, want := key, "RS256", "urn:ietf:params:oauth:grant-type:jwt-bearer", http.StatusBadRequest
			if tc.key != nil {
				signer = tc.key
			}
			if tc.algorithm != "" {
				algorithm = tc.algorithm
			}
			if tc.grant != "" {
				grant = tc.grant
			}
			if tc.want != 0 {
				want = tc.want
			}
			got := post(t, e, "/token", url.Values{"grant_type": {grant}, "assertion": {assertion(t, algorithm, claims, signer)}})
			if got != want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, want, got)
			}
		})
	}
	if got := post(t, e, "/token", url.Values{"assertion": {"x"}}); got != http.StatusBadRequest {
		t.Errorf("what is no JWT is refused: got %d", got)
	}
}

// TestEntraIDRefusesOtherPrincipals: each of the tenant, the client, its secret and the scope is checked.
func TestEntraIDRefusesOtherPrincipals(t *testing.T) {
	e := endpoint(t)
	path := e.AddServicePrincipal(fakecloud.ServicePrincipal{TenantID: "tenant", ClientID: "client", Secret: "hunter2"}, aToken)
	good := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"client"}, "client_secret": {"hunter2"},
		"scope": {"6dae42f8-4368-4678-94ff-3960e28e3630/.default"},
	}
	if got := post(t, e, path, good); got != http.StatusOK {
		t.Errorf("want a token, got %d", got)
	}
	if got := post(t, e, "/another/oauth2/v2.0/token", good); got != http.StatusBadRequest {
		t.Errorf("another tenant does not know the principal: got %d", got)
	}
	for field, value := range map[string]string{
		"grant_type": "password", "client_id": "another", "client_secret": "guessed", "scope": "https://management.azure.com/.default",
	} {
		form := maps.Clone(good)
		form.Set(field, value)
		if got := post(t, e, path, form); got != http.StatusBadRequest {
			t.Errorf("%s %q is refused: got %d", field, value, got)
		}
	}
	e.Revoke(path)
	if got := post(t, e, path, good); got != http.StatusBadRequest {
		t.Errorf("who is revoked is refused: got %d", got)
	}
	e.Restore(path)
	if got := post(t, e, path, good); got != http.StatusOK {
		t.Errorf("who is restored is not: got %d", got)
	}
}
