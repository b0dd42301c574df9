// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/internal/test/fakecloud"
)

const (
	pool          = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/hubs/providers/europe"
	entraAudience = "api://AzureADTokenExchange"
	subject       = "system:serviceaccount:customers:shop-importer"
)

// issuer starts an API server that shows one key, and is the issuer of what the key signs.
func issuer(t *testing.T, key *ecdsa.PrivateKey) (fakecloud.Hub, string) {
	t.Helper()
	public, err := key.PublicKey.Bytes() // The byte 4, then the two numbers.
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	server := httptest.NewServer(nil)
	t.Cleanup(server.Close)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/openid/v1/jwks" {
			_, _ = fmt.Fprintf(w, `{"keys":[{"kid":"hub","crv":"P-256","x":%q,"y":%q}]}`, encode(public[1:33]), encode(public[33:]))
			return
		}
		_, _ = fmt.Fprintf(w, `{"issuer":%q}`, server.URL)
	})
	hub, err := fakecloud.NewHub(t.Context(), &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return hub, server.URL
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// hubToken returns a token of a ServiceAccount, as an API server signs it.
func hubToken(t *testing.T, header map[string]string, claims map[string]any, key *ecdsa.PrivateKey) string {
	t.Helper()
	encoded := make([]string, 0, 3)
	for _, part := range []any{header, claims} {
		content, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, base64.RawURLEncoding.EncodeToString(content))
	}
	sum := sha256.Sum256([]byte(strings.Join(encoded, ".")))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return strings.Join(append(encoded, base64.RawURLEncoding.EncodeToString(signature)), ".")
}

// TestCloudsRefuseOtherIdentities: a pool, or an application of Entra ID, that accepted every token would not show who
// requests one from the hub, and for what.
func TestCloudsRefuseOtherIdentities(t *testing.T) {
	e := endpoint(t)
	key, another := newKey(t), newKey(t)
	hub, iss := issuer(t, key)
	e.AddPoolProvider(hub, pool, "customers", "shop-importer", aToken)
	e.AddFederatedCredential(hub, fakecloud.ServicePrincipal{TenantID: "tenant", ClientID: "client"}, "customers", "shop-importer", aToken)
	clouds := map[string]struct {
		path, audience, shown string
		form                  url.Values
	}{
		"Google": {"/v1/token", pool, "subject_token", url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "audience": {pool},
			"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
			"subject_token_type":   {"urn:ietf:params:oauth:token-type:jwt"}, "scope": {"https://www.googleapis.com/auth/cloud-platform"},
		}},
		"Azure": {"/tenant/oauth2/v2.0/token", entraAudience, "client_assertion", url.Values{
			"grant_type": {"client_credentials"}, "client_id": {"client"}, "scope": {"6dae42f8-4368-4678-94ff-3960e28e3630/.default"},
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		}},
	}
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, tc := range map[string]struct {
		reason string
		claims map[string]any
		header map[string]string
		key    *ecdsa.PrivateKey
		form   map[string]string
		shown  func(token string) string
		want   int
	}{
		"Good":           {reason: "It is what the hub gives.", want: http.StatusOK},
		"OtherAudience":  {reason: "It was requested for another audience.", claims: map[string]any{"aud": []string{"https://vault.example.org"}}},
		"TheHub":         {reason: "It would work in the hub, too.", claims: map[string]any{"aud": []string{"AUDIENCE", "https://kubernetes.default.svc"}}},
		"NoAudience":     {reason: "It is for everybody.", claims: map[string]any{"aud": []string{}}},
		"OtherSubject":   {reason: "It is another ServiceAccount.", claims: map[string]any{"sub": "system:serviceaccount:customers:default"}},
		"OtherNamespace": {reason: "It is another tenant's.", claims: map[string]any{"sub": "system:serviceaccount:others:shop-importer"}},
		"OtherIssuer":    {reason: "It is another hub's.", claims: map[string]any{"iss": "https://hub.example.org"}},
		"Expired":        {reason: "It counts no more.", claims: map[string]any{"iat": at(-time.Hour), "exp": at(-50 * time.Minute)}},
		"NotYet":         {reason: "It does not count yet.", claims: map[string]any{"nbf": at(time.Minute)}},
		"TooLong":        {reason: "The hub requests ten minutes.", claims: map[string]any{"exp": at(time.Hour)}},
		"OtherKey":       {reason: "It has the signature of another key.", key: another},
		"UnknownKey":     {reason: "The hub shows no such key.", header: map[string]string{"kid": "another"}},
		"NoSignature":    {reason: "An unsigned one proves nothing.", header: map[string]string{"alg": "none"}},
		"Changed": {reason: "It was changed after it was signed.", shown: func(token string) string {
			parts := strings.Split(token, ".")
			content, _ := base64.RawURLEncoding.DecodeString(parts[1])
			parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(content), `"exp":`, `"exp":1`, 1)))
			return strings.Join(parts, ".")
		}},
		"NoJWT":      {reason: "It is no token of an API server.", shown: func(string) string { return "t" }},
		"Nothing":    {reason: "Nothing is shown.", shown: func(string) string { return "" }},
		"OtherGrant": {reason: "It is not a token exchange.", form: map[string]string{"grant_type": "password"}},
		"OtherScope": {reason: "It is for something else.", form: map[string]string{"scope": "openid"}},
		"Secret":     {reason: "Who shows a token shows no secret.", form: map[string]string{"client_secret": "hunter2"}},
	} {
		for cloud, c := range clouds {
			t.Run(name+cloud, func(t *testing.T) {
				claims := map[string]any{
					"iss": iss, "aud": []string{c.audience}, "sub": subject, "iat": at(-time.Second), "nbf": at(-time.Second), "exp": at(9 * time.Minute),
				}
				maps.Copy(claims, tc.claims)
				if audience, ok := claims["aud"].([]string); ok && len(audience) == 2 {
					claims["aud"] = []string{c.audience, audience[1]}
				}
				header, signer := map[string]string{"alg": "ES256", "typ": "JWT", "kid": "hub"}, key
				maps.Copy(header, tc.header)
				if tc.key != nil {
					signer = tc.key
				}
				shown := hubToken(t, header, claims, signer)
				if tc.shown != nil {
					shown = tc.shown(shown)
				}
				form := maps.Clone(c.form)
				form.Set(c.shown, shown)
				for field, value := range tc.form {
					form.Set(field, value)
				}
				want := http.StatusBadRequest
				if tc.want != 0 {
					want = tc.want
				}
				if got := post(t, e, c.path, form); got != want {
					t.Errorf("%s\nwant %d, got %d", tc.reason, want, got)
				}
				if was := e.Shown() == shown; shown != "" && tc.form == nil && was != (want == http.StatusOK) {
					t.Errorf("%s\nit counts as shown: %t", tc.reason, was)
				}
			})
		}
	}
	google := maps.Clone(clouds["Google"].form)
	google.Set("audience", strings.Replace(pool, "europe", "asia", 1))
	if got := post(t, e, "/v1/token", google); got != http.StatusBadRequest {
		t.Errorf("another provider of the pool is refused: got %d", got)
	}
	if got := post(t, e, "/another/oauth2/v2.0/token", clouds["Azure"].form); got != http.StatusBadRequest {
		t.Errorf("another tenant is refused: got %d", got)
	}
}
