// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token/tokentest"
)

func impersonated(expires time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tokentest.Answering(http.StatusOK, fmt.Sprintf(`{"accessToken":"impersonated","expireTime":%q}`, time.Now().Add(expires).UTC().Format(time.RFC3339Nano)))(w, r)
	}
}

func hubGives(context.Context) (string, error) { return tokentest.HubSecret, nil }

// TestExchange compares what is sent with what Google and Entra ID require, and makes their endpoints answer in every
// way.
func TestExchange(t *testing.T) {
	const email, uuid = "reader@shop-project.iam.gserviceaccount.com", "11111111-2222-3333-4444-555555555555"
	form := func(want map[string]string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			err := r.ParseForm()
			for field, value := range want {
				if err != nil || r.Method != http.MethodPost || r.PostForm.Get(field) != value || len(r.PostForm) != len(want) || r.Header.Get("Authorization") != "" {
					http.Error(w, "invalid_request", http.StatusBadRequest)
					return
				}
			}
			tokentest.Answering(http.StatusOK, tokentest.Exchanged)(w, r)
		}
	}
	google := form(map[string]string{
		"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "audience": tokentest.PoolProvider, "subject_token": tokentest.HubSecret,
		"requested_token_type": "urn:ietf:params:oauth:token-type:access_token", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
		"scope": "https://www.googleapis.com/auth/cloud-platform",
	})
	azure := form(map[string]string{
		"grant_type": "client_credentials", "client_id": uuid, "scope": "6dae42f8-4368-4678-94ff-3960e28e3630/.default",
		"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion": tokentest.HubSecret,
	})
	account := func(w http.ResponseWriter, r *http.Request) {
		var requested struct {
			Scope    []string `json:"scope"`
			Lifetime string   `json:"lifetime"`
		}
		if err := json.NewDecoder(r.Body).Decode(&requested); err != nil || len(requested.Scope) != 2 || requested.Lifetime != "3600s" ||
			r.Header.Get("Authorization") != "Bearer federated" || r.URL.Path != "/v1/projects/-/serviceAccounts/"+email+":generateAccessToken" {
			http.Error(w, "PERMISSION_DENIED", http.StatusForbidden)
			return
		}
		impersonated(time.Hour)(w, r)
	}
	repeating := func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		http.Error(w, r.Form.Encode(), http.StatusBadRequest)
	}
	other, _ := tokentest.Server(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}
	huge := func(w http.ResponseWriter, r *http.Request) {
		tokentest.Answering(http.StatusOK, `{"access_token":"`+strings.Repeat("a", 2*maxTokenAnswer)+`"}`)(w, r)
	}
	cases := map[string]struct {
		reason string
		cloud  *tokentest.Cloud
		email  string
		azure  bool
		// want is the token; without one, problem is in the error.
		want, problem string
		asks          int64
	}{
		"Google":        {reason: "The federated token is the cluster's.", cloud: &tokentest.Cloud{STS: google}, want: "federated", asks: 1},
		"Impersonation": {reason: "The service account's is.", cloud: &tokentest.Cloud{STS: google, IAM: account}, email: email, want: "impersonated", asks: 2},
		"Azure":         {reason: "The assertion is in place of the secret.", cloud: &tokentest.Cloud{Entra: azure}, azure: true, want: "federated", asks: 1},
		"InvalidGrant":  {reason: "The pool does not know the ServiceAccount.", cloud: &tokentest.Cloud{STS: tokentest.Answering(400, `{"error":"invalid_grant"}`)}, problem: "status 400", asks: 1},
		"Forbidden":     {reason: "The project does.", cloud: &tokentest.Cloud{STS: tokentest.Answering(403, `{}`)}, problem: "status 403", asks: 1},
		"TooMany":       {reason: "There are too many requests.", cloud: &tokentest.Cloud{STS: tokentest.Answering(429, `{}`)}, problem: "status 429", asks: 1},
		"Broken":        {reason: "It is broken.", cloud: &tokentest.Cloud{STS: tokentest.Answering(500, `{}`)}, problem: "status 500", asks: 1},
		"AzureRefuses":  {reason: "There is no federated credential.", cloud: &tokentest.Cloud{Entra: tokentest.Answering(401, `{}`)}, azure: true, problem: "status 401", asks: 1},
		"NotImpersonated": {
			reason: "The identity may not impersonate.", cloud: &tokentest.Cloud{STS: google, IAM: tokentest.Answering(403, `{}`)}, email: email, problem: "status 403", asks: 2,
		},
		"Repeats":      {reason: "The endpoint repeats what it was sent.", cloud: &tokentest.Cloud{STS: repeating}, problem: "status 400", asks: 1},
		"Redirects":    {reason: "Another host is sent nothing.", cloud: &tokentest.Cloud{STS: redirect}, problem: "status 307", asks: 1},
		"IAMRedirects": {reason: "Neither is Google's own token.", cloud: &tokentest.Cloud{STS: google, IAM: redirect}, email: email, problem: "status 307", asks: 2},
		"Huge":         {reason: "An answer is bounded.", cloud: &tokentest.Cloud{STS: huge}, problem: "returns no token", asks: 1},
		"IAMHuge":      {reason: "So is this one.", cloud: &tokentest.Cloud{STS: google, IAM: huge}, email: email, problem: "returns no token", asks: 2},
		"Empty":        {reason: "An empty token is none.", cloud: &tokentest.Cloud{STS: tokentest.Answering(200, `{"access_token":"","expires_in":3600}`)}, problem: "returns no token", asks: 1},
		"IAMEmpty":     {reason: "Nor is it here.", cloud: &tokentest.Cloud{STS: google, IAM: tokentest.Answering(200, `{"expireTime":"2099-01-01T00:00:00Z"}`)}, email: email, problem: "returns no token", asks: 2},
		"NoExpiry":     {reason: "The token of an account always ends.", cloud: &tokentest.Cloud{STS: google, IAM: tokentest.Answering(200, `{"accessToken":"a"}`)}, email: email, problem: "returns no token", asks: 2},
		"Expired":      {reason: "It has ended already.", cloud: &tokentest.Cloud{STS: google, IAM: impersonated(-time.Hour)}, email: email, problem: "returns no token", asks: 2},
		"NegativeTime": {reason: "So has this one.", cloud: &tokentest.Cloud{STS: tokentest.Answering(200, `{"access_token":"a","expires_in":-5}`)}, problem: "returns no token", asks: 1},
		"Moment":       {reason: "It would be requested all the time.", cloud: &tokentest.Cloud{STS: tokentest.Answering(200, `{"access_token":"a","expires_in":1}`)}, problem: "returns no token", asks: 1},
		"Nonsense":     {reason: "It is no JSON.", cloud: &tokentest.Cloud{STS: tokentest.Answering(200, `<html>`)}, problem: "returns no token", asks: 1},
		"OtherType": {
			reason: "It is no access token.", cloud: &tokentest.Cloud{STS: tokentest.Answering(200, `{"access_token":"a","issued_token_type":"urn:ietf:params:oauth:token-type:saml2","expires_in":3600}`)},
			problem: "returns no token", asks: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server, ca := tokentest.Server(t, tc.cloud.ServeHTTP)
			clock := clocktesting.NewFakeClock(time.Now())
			minted, err := New([]string{server.URL + "/"}, ca, clock)
			if err != nil {
				t.Fatal(err)
			}
			e, err := googleExchange(tokentest.Identity(server, tc.email))
			if err != nil {
				t.Fatal(err)
			}
			if tc.azure {
				e = azureExchange(&fleetv1alpha1.AzureServicePrincipal{
					TenantID: uuid, ClientID: uuid, AuthorityHost: fleetv1alpha1.HTTPSURL(server.URL),
					WorkloadIdentity: &fleetv1alpha1.AzureWorkloadIdentity{ServiceAccountName: "shop-importer"},
				})
			}
			request, err := minted.ExchangeRequest(e, hubGives)
			if err != nil {
				t.Fatal(err)
			}
			got, again, err := minted.Get(t.Context(), types.NamespacedName{Name: name}, request, freely)
			if tc.want != "" && (err != nil || got.AccessToken != tc.want || again <= 0 || again > time.Hour) {
				t.Errorf("%s\nwant %s, got %v, %v, %v", tc.reason, tc.want, got, again, err)
			}
			if tc.want == "" && (err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), tokentest.HubSecret)) {
				t.Errorf("%s\nwant an error with %q and without the token, got %v", tc.reason, tc.problem, err)
			}
			// An endpoint that refuses is left alone; one that gave a token gets no request before the next is due.
			_, _, _ = minted.Get(t.Context(), types.NamespacedName{Name: name}, request, freely)
			if n := tc.cloud.Requests.Load(); n != tc.asks {
				t.Errorf("%s\nwant %d requests, got %d", tc.reason, tc.asks, n)
			}
		})
	}
}

// TestLongestTokenIsADay: an endpoint says that its token works for a century. Without a bound, no other token would
// ever be requested.
func TestLongestTokenIsADay(t *testing.T) {
	cloud := &tokentest.Cloud{STS: tokentest.Answering(http.StatusOK, `{"access_token":"a","expires_in":3153600000}`)}
	server, ca := tokentest.Server(t, cloud.ServeHTTP)
	clock := clocktesting.NewFakeClock(time.Now())
	minted, err := New([]string{server.URL + "/"}, ca, clock)
	if err != nil {
		t.Fatal(err)
	}
	e, err := googleExchange(tokentest.Identity(server, ""))
	if err != nil {
		t.Fatal(err)
	}
	request, err := minted.ExchangeRequest(e, hubGives)
	if err != nil {
		t.Fatal(err)
	}
	token, again, err := minted.Get(t.Context(), types.NamespacedName{}, request, freely)
	if err != nil || token.Expiry.After(clock.Now().Add(longestToken)) || again > longestToken {
		t.Errorf("want a token for a day at most, got %v, %v, %v", token, again, err)
	}
}

// TestExchangeAsksAllowedEndpointsAlone: the attacker names their own endpoint, for the token of the ServiceAccount or
// for Google's token. The former is not even requested from the hub.
func TestExchangeAsksAllowedEndpointsAlone(t *testing.T) {
	minted, err := New(DefaultAllowedTokenEndpoints(), nil, clocktesting.NewFakeClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	const email = "reader@shop-project.iam.gserviceaccount.com"
	for name, tc := range map[string]struct {
		reason           string
		sts, credentials fleetv1alpha1.HTTPSURL
		email            string
		allowed          bool
	}{
		"Google":           {reason: "The operator allows Google's by default.", email: email, allowed: true},
		"NoImpersonation":  {reason: "An endpoint that is not used need not be allowed.", credentials: "https://iam.example.org", allowed: true},
		"OtherSTS":         {reason: "The operator does not allow this endpoint.", sts: "https://sts.example.org/v1/token"},
		"OtherPath":        {reason: "Google has other services at the host.", sts: "https://sts.googleapis.com/v1/introspect"},
		"OtherCredentials": {reason: "The operator does not allow this endpoint.", credentials: "https://iam.example.org", email: email},
		"PathAbove":        {reason: "An e-mail address leads nowhere else.", email: "../../../" + email},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := googleExchange(&fleetv1alpha1.GoogleWorkloadIdentity{
				ServiceAccountName: "a", Audience: tokentest.PoolProvider, ServiceAccountEmail: tc.email,
				STSEndpoint: tc.sts, CredentialsEndpoint: tc.credentials,
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = minted.ExchangeRequest(e, func(context.Context) (string, error) {
				t.Errorf("%s\na token was requested from the hub", tc.reason)
				return "", nil
			})
			if tc.allowed && err != nil || !tc.allowed && !errors.Is(err, ErrEndpointNotAllowed) {
				t.Errorf("%s\nallowed: want %v, got %v", tc.reason, tc.allowed, err)
			}
		})
	}
}

// TestAudienceIsNeverTheHub: regardless of what the CRD accepts, no token for the hub is requested.
func TestAudienceIsNeverTheHub(t *testing.T) {
	for _, audience := range []string{
		"", "https://kubernetes.default.svc.cluster.local", "api", "https://hub.example.org" + tokentest.PoolProvider, "iam.googleapis.com/projects/1",
	} {
		if _, err := googleExchange(&fleetv1alpha1.GoogleWorkloadIdentity{ServiceAccountName: "a", Audience: audience}); err == nil {
			t.Errorf("googleExchange(%q): want an error", audience)
		}
	}
	if e := azureExchange(&fleetv1alpha1.AzureServicePrincipal{WorkloadIdentity: &fleetv1alpha1.AzureWorkloadIdentity{}}); e.Audience != "api://AzureADTokenExchange" {
		t.Errorf("the audience for Entra ID is fixed, got %q", e.Audience)
	}
}

// TestExchangesAreCounted: each request is counted at its endpoint, and a request that the hub refuses at none.
func TestExchangesAreCounted(t *testing.T) {
	cloud := &tokentest.Cloud{STS: tokentest.Answering(http.StatusOK, tokentest.Exchanged), IAM: tokentest.Answering(http.StatusForbidden, `{}`)}
	server, ca := tokentest.Server(t, cloud.ServeHTTP)
	minted, err := New([]string{server.URL + "/v1/token", server.URL + googleAccountsPath}, ca, clocktesting.NewFakeClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	minted.Register(prometheus.NewPedanticRegistry())
	e, err := googleExchange(tokentest.Identity(server, "reader@shop-project.iam.gserviceaccount.com"))
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("the hub refuses")
	for _, subject := range []func(context.Context) (string, error){func(context.Context) (string, error) { return "", refused }, hubGives} {
		request, err := minted.ExchangeRequest(e, subject)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = minted.Get(t.Context(), types.NamespacedName{Name: "shop"}, request, freely); err == nil {
			t.Error("want an error")
		}
	}
	for series, want := range map[[2]string]float64{
		{server.URL + "/v1/token", tokenGranted}: 1, {server.URL + "/v1/token", tokenRefused}: 0, {server.URL + googleAccountsPath, tokenRefused}: 1,
		{server.URL + googleAccountsPath, tokenGranted}: 0, {server.URL + "/v1/token", tokenFailed}: 0,
	} {
		if got := testutil.ToFloat64(minted.requests.WithLabelValues(series[:]...)); got != want {
			t.Errorf("%v: want %v, got %v", series, want, got)
		}
	}
}
