// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

const (
	poolProvider = "//iam.googleapis.com/projects/123456789/locations/global/workloadIdentityPools/hubs/providers/europe"
	// hubSecret is the token of the ServiceAccount, which nobody but the token endpoint may see.
	hubSecret = "the-token-of-the-hub"
	exchanged = `{"access_token":"federated","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`
)

// cloudOf answers at the paths of Google's and Entra ID's endpoints, each by what it is given.
type cloudOf struct {
	sts, iam, entra http.HandlerFunc
	// asked counts the requests.
	asked atomic.Int64
}

func (c *cloudOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked.Add(1)
	switch {
	case r.URL.Path == "/v1/token" && c.sts != nil:
		c.sts(w, r)
	case strings.HasPrefix(r.URL.Path, googleAccountsPath) && c.iam != nil:
		c.iam(w, r)
	case strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token") && c.entra != nil:
		c.entra(w, r)
	default:
		http.NotFound(w, r)
	}
}

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

func impersonated(expires time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answering(http.StatusOK, fmt.Sprintf(`{"accessToken":"impersonated","expireTime":%q}`, time.Now().Add(expires).UTC().Format(time.RFC3339Nano)))(w, r)
	}
}

func googleIdentity(server *httptest.Server, email string) *fleetv1alpha1.GoogleWorkloadIdentity {
	return &fleetv1alpha1.GoogleWorkloadIdentity{
		ServiceAccountName: "shop-importer", Audience: poolProvider, ServiceAccountEmail: email,
		STSEndpoint: fleetv1alpha1.HTTPSURL(server.URL + "/v1/token"), CredentialsEndpoint: fleetv1alpha1.HTTPSURL(server.URL),
	}
}

func hubGives(context.Context) (string, error) { return hubSecret, nil }

// TestExchange holds what is sent against what Google and Entra ID ask for, and has their endpoints answer in every
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
			answering(http.StatusOK, exchanged)(w, r)
		}
	}
	google := form(map[string]string{
		"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "audience": poolProvider, "subject_token": hubSecret,
		"requested_token_type": "urn:ietf:params:oauth:token-type:access_token", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
		"scope": "https://www.googleapis.com/auth/cloud-platform",
	})
	azure := form(map[string]string{
		"grant_type": "client_credentials", "client_id": uuid, "scope": "6dae42f8-4368-4678-94ff-3960e28e3630/.default",
		"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion": hubSecret,
	})
	account := func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Scope    []string `json:"scope"`
			Lifetime string   `json:"lifetime"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Scope) != 2 || asked.Lifetime != "3600s" ||
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
	other, _ := tokenServer(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}
	huge := func(w http.ResponseWriter, r *http.Request) {
		answering(http.StatusOK, `{"access_token":"`+strings.Repeat("a", 2*maxTokenAnswer)+`"}`)(w, r)
	}
	cases := map[string]struct {
		reason string
		cloud  *cloudOf
		email  string
		azure  bool
		// want is the token; without one, problem is in the error.
		want, problem string
		asks          int64
	}{
		"Google":        {reason: "The federated token is the cluster's.", cloud: &cloudOf{sts: google}, want: "federated", asks: 1},
		"Impersonation": {reason: "The service account's is.", cloud: &cloudOf{sts: google, iam: account}, email: email, want: "impersonated", asks: 2},
		"Azure":         {reason: "The assertion is in place of the secret.", cloud: &cloudOf{entra: azure}, azure: true, want: "federated", asks: 1},
		"InvalidGrant":  {reason: "The pool does not know the ServiceAccount.", cloud: &cloudOf{sts: answering(400, `{"error":"invalid_grant"}`)}, problem: "status 400", asks: 1},
		"Forbidden":     {reason: "The project does.", cloud: &cloudOf{sts: answering(403, `{}`)}, problem: "status 403", asks: 1},
		"TooMany":       {reason: "It is asked too often.", cloud: &cloudOf{sts: answering(429, `{}`)}, problem: "status 429", asks: 1},
		"Broken":        {reason: "It is broken.", cloud: &cloudOf{sts: answering(500, `{}`)}, problem: "status 500", asks: 1},
		"AzureRefuses":  {reason: "There is no federated credential.", cloud: &cloudOf{entra: answering(401, `{}`)}, azure: true, problem: "status 401", asks: 1},
		"NotImpersonated": {
			reason: "The identity may not impersonate.", cloud: &cloudOf{sts: google, iam: answering(403, `{}`)}, email: email, problem: "status 403", asks: 2,
		},
		"Repeats":      {reason: "The endpoint repeats what it was sent.", cloud: &cloudOf{sts: repeating}, problem: "status 400", asks: 1},
		"Redirects":    {reason: "Another host is sent nothing.", cloud: &cloudOf{sts: redirect}, problem: "status 307", asks: 1},
		"IAMRedirects": {reason: "Neither is Google's own token.", cloud: &cloudOf{sts: google, iam: redirect}, email: email, problem: "status 307", asks: 2},
		"Huge":         {reason: "An answer is bounded.", cloud: &cloudOf{sts: huge}, problem: "gives no token", asks: 1},
		"IAMHuge":      {reason: "So is this one.", cloud: &cloudOf{sts: google, iam: huge}, email: email, problem: "gives no token", asks: 2},
		"Empty":        {reason: "An empty token is none.", cloud: &cloudOf{sts: answering(200, `{"access_token":"","expires_in":3600}`)}, problem: "gives no token", asks: 1},
		"IAMEmpty":     {reason: "Nor is it here.", cloud: &cloudOf{sts: google, iam: answering(200, `{"expireTime":"2099-01-01T00:00:00Z"}`)}, email: email, problem: "gives no token", asks: 2},
		"NoExpiry":     {reason: "The token of an account always ends.", cloud: &cloudOf{sts: google, iam: answering(200, `{"accessToken":"a"}`)}, email: email, problem: "gives no token", asks: 2},
		"Expired":      {reason: "It has ended already.", cloud: &cloudOf{sts: google, iam: impersonated(-time.Hour)}, email: email, problem: "gives no token", asks: 2},
		"NegativeTime": {reason: "So has this one.", cloud: &cloudOf{sts: answering(200, `{"access_token":"a","expires_in":-5}`)}, problem: "gives no token", asks: 1},
		"Moment":       {reason: "It would be asked for all the time.", cloud: &cloudOf{sts: answering(200, `{"access_token":"a","expires_in":1}`)}, problem: "gives no token", asks: 1},
		"Nonsense":     {reason: "It is no JSON.", cloud: &cloudOf{sts: answering(200, `<html>`)}, problem: "gives no token", asks: 1},
		"OtherType": {
			reason: "It is no access token.", cloud: &cloudOf{sts: answering(200, `{"access_token":"a","issued_token_type":"urn:ietf:params:oauth:token-type:saml2","expires_in":3600}`)},
			problem: "gives no token", asks: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server, ca := tokenServer(t, tc.cloud.ServeHTTP)
			clock := clocktesting.NewFakeClock(time.Now())
			minted, err := newTokens([]string{server.URL + "/"}, ca, clock)
			if err != nil {
				t.Fatal(err)
			}
			e, err := googleExchange(googleIdentity(server, tc.email))
			if err != nil {
				t.Fatal(err)
			}
			if tc.azure {
				e = azureExchange(&fleetv1alpha1.AzureServicePrincipal{
					TenantID: uuid, ClientID: uuid, AuthorityHost: server.URL,
					WorkloadIdentity: &fleetv1alpha1.AzureWorkloadIdentity{ServiceAccountName: "shop-importer"},
				})
			}
			request, err := minted.exchangeRequest(e, hubGives)
			if err != nil {
				t.Fatal(err)
			}
			got, again, err := minted.get(t.Context(), types.NamespacedName{Name: name}, request, freely)
			if tc.want != "" && (err != nil || got.AccessToken != tc.want || again <= 0 || again > time.Hour) {
				t.Errorf("%s\nwant %s, got %v, %v, %v", tc.reason, tc.want, got, again, err)
			}
			if tc.want == "" && (err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), hubSecret)) {
				t.Errorf("%s\nwant an error with %q and without the token, got %v", tc.reason, tc.problem, err)
			}
			// An endpoint that refuses is left alone; one that gave a token is not asked before that is due.
			_, _, _ = minted.get(t.Context(), types.NamespacedName{Name: name}, request, freely)
			if n := tc.cloud.asked.Load(); n != tc.asks {
				t.Errorf("%s\nwant %d requests, got %d", tc.reason, tc.asks, n)
			}
		})
	}
}

// TestLongestTokenIsADay: an endpoint says that its token works for a century, and would never be asked again.
func TestLongestTokenIsADay(t *testing.T) {
	cloud := &cloudOf{sts: answering(http.StatusOK, `{"access_token":"a","expires_in":3153600000}`)}
	server, ca := tokenServer(t, cloud.ServeHTTP)
	clock := clocktesting.NewFakeClock(time.Now())
	minted, err := newTokens([]string{server.URL + "/"}, ca, clock)
	if err != nil {
		t.Fatal(err)
	}
	e, err := googleExchange(googleIdentity(server, ""))
	if err != nil {
		t.Fatal(err)
	}
	request, err := minted.exchangeRequest(e, hubGives)
	if err != nil {
		t.Fatal(err)
	}
	token, again, err := minted.get(t.Context(), types.NamespacedName{}, request, freely)
	if err != nil || token.Expiry.After(clock.Now().Add(longestToken)) || again > longestToken {
		t.Errorf("want a token for a day at most, got %v, %v, %v", token, again, err)
	}
}

// TestExchangeAsksAllowedEndpointsAlone: the attacker names an endpoint of their own, for the token of the
// ServiceAccount or for Google's. The hub is not even asked for the first.
func TestExchangeAsksAllowedEndpointsAlone(t *testing.T) {
	minted, err := newTokens(DefaultAllowedTokenEndpoints(), nil, clocktesting.NewFakeClock(time.Now()))
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
		"NoImpersonation":  {reason: "What is not asked need not be allowed.", credentials: "https://iam.example.org", allowed: true},
		"OtherSTS":         {reason: "It is nobody's.", sts: "https://sts.example.org/v1/token"},
		"OtherPath":        {reason: "Google has other services at the host.", sts: "https://sts.googleapis.com/v1/introspect"},
		"OtherCredentials": {reason: "It is nobody's either.", credentials: "https://iam.example.org", email: email},
		"PathAbove":        {reason: "An e-mail address leads nowhere else.", email: "../../../" + email},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := googleExchange(&fleetv1alpha1.GoogleWorkloadIdentity{
				ServiceAccountName: "a", Audience: poolProvider, ServiceAccountEmail: tc.email,
				STSEndpoint: tc.sts, CredentialsEndpoint: tc.credentials,
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = minted.exchangeRequest(e, func(context.Context) (string, error) {
				t.Errorf("%s\nthe hub was asked", tc.reason)
				return "", nil
			})
			if tc.allowed && err != nil || !tc.allowed && !errors.Is(err, errEndpointNotAllowed) {
				t.Errorf("%s\nallowed: want %v, got %v", tc.reason, tc.allowed, err)
			}
		})
	}
}

// TestAudienceIsNeverTheHub: whatever the CRD lets in, a token for the hub is not asked for.
func TestAudienceIsNeverTheHub(t *testing.T) {
	for _, audience := range []string{
		"", "https://kubernetes.default.svc.cluster.local", "api", "https://hub.example.org" + poolProvider, "iam.googleapis.com/projects/1",
	} {
		if _, err := googleExchange(&fleetv1alpha1.GoogleWorkloadIdentity{ServiceAccountName: "a", Audience: audience}); err == nil {
			t.Errorf("googleExchange(%q): want an error", audience)
		}
	}
	if e := azureExchange(&fleetv1alpha1.AzureServicePrincipal{WorkloadIdentity: &fleetv1alpha1.AzureWorkloadIdentity{}}); e.audience != "api://AzureADTokenExchange" {
		t.Errorf("the audience for Entra ID is fixed, got %q", e.audience)
	}
}

// TestExchangesAreCounted: each request is counted at its endpoint, and what the hub refuses at none.
func TestExchangesAreCounted(t *testing.T) {
	cloud := &cloudOf{sts: answering(http.StatusOK, exchanged), iam: answering(http.StatusForbidden, `{}`)}
	server, ca := tokenServer(t, cloud.ServeHTTP)
	minted, err := newTokens([]string{server.URL + "/v1/token", server.URL + googleAccountsPath}, ca, clocktesting.NewFakeClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	minted.register(prometheus.NewPedanticRegistry())
	e, err := googleExchange(googleIdentity(server, "reader@shop-project.iam.gserviceaccount.com"))
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("the hub refuses")
	for _, subject := range []func(context.Context) (string, error){func(context.Context) (string, error) { return "", refused }, hubGives} {
		request, err := minted.exchangeRequest(e, subject)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = minted.get(t.Context(), types.NamespacedName{Name: "shop"}, request, freely); err == nil {
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

// importWithIdentity is an import with the identity of a ServiceAccount of the hub, whose endpoint gives tokens.
func importWithIdentity(t *testing.T) (*hubOfOneImport, *cloudOf) {
	t.Helper()
	cloud := &cloudOf{sts: answering(http.StatusOK, exchanged)}
	server, ca := tokenServer(t, cloud.ServeHTTP)
	imp := anImport()
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceGoogleServiceAccount,
		Google: &fleetv1alpha1.GoogleServiceAccount{WorkloadIdentity: googleIdentity(server, "")},
	}
	h := newHub(t, imp, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: imp.Namespace, Name: "shop-importer", Labels: map[string]string{fleetv1alpha1.ImportCredentialsLabel: string(imp.UID)},
	}})
	minted, err := newTokens([]string{server.URL + "/"}, ca, h.r.clock)
	if err != nil {
		t.Fatal(err)
	}
	h.r.tokens = minted
	return h, cloud
}

// TestHubGivesATokenForOneAudience: the request is for the namespace of the import, for one audience and ten minutes;
// and what else the hub answers leads to nobody being shown anything.
func TestHubGivesATokenForOneAudience(t *testing.T) {
	accounts := schema.GroupResource{Resource: "serviceaccounts"}
	for name, tc := range map[string]struct {
		reason string
		answer func(*authenticationv1.TokenRequest) error
		want   string
		asks   int64
	}{
		"Given": {reason: "It is shown once.", answer: func(*authenticationv1.TokenRequest) error { return nil }, want: fleetv1alpha1.ReasonKubeconfigWritten, asks: 1},
		"Forbidden": {
			reason: "The right was taken away just now.", want: fleetv1alpha1.ReasonHubServiceAccountNotAllowed,
			answer: func(*authenticationv1.TokenRequest) error {
				return apierrors.NewForbidden(accounts, "shop-importer", errors.New("no such right"))
			},
		},
		"NotFound": {
			reason: "There is none of the name.", want: fleetv1alpha1.ReasonHubServiceAccountNotFound,
			answer: func(*authenticationv1.TokenRequest) error { return apierrors.NewNotFound(accounts, "shop-importer") },
		},
		"Invalid": {
			reason: "The hub gives no token for ten minutes.", want: fleetv1alpha1.ReasonTokenRefused,
			answer: func(*authenticationv1.TokenRequest) error { return apierrors.NewBadRequest("expirationSeconds") },
		},
		"Empty": {
			reason: "There is nothing to show.", want: fleetv1alpha1.ReasonTokenRefused,
			answer: func(r *authenticationv1.TokenRequest) error { r.Status.Token = ""; return nil },
		},
		"OtherAudience": {
			reason: "A webhook made it one for the hub.", want: fleetv1alpha1.ReasonTokenRefused,
			answer: func(r *authenticationv1.TokenRequest) error {
				r.Spec.Audiences = append(r.Spec.Audiences, "https://kubernetes.default.svc")
				return nil
			},
		},
		"Huge": {
			reason: "It is no token of Kubernetes's.", want: fleetv1alpha1.ReasonTokenRefused,
			answer: func(r *authenticationv1.TokenRequest) error {
				r.Status.Token = strings.Repeat("a", maxHubToken+1)
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, cloud := importWithIdentity(t)
			funcs := h.funcs()
			funcs.SubResourceCreate = func(_ context.Context, _ client.Client, sub string, of, asked client.Object, _ ...client.SubResourceCreateOption) error {
				request, ok := asked.(*authenticationv1.TokenRequest)
				if !ok || sub != "token" || of.GetNamespace() != h.key.Namespace || of.GetName() != "shop-importer" ||
					len(request.Spec.Audiences) != 1 || request.Spec.Audiences[0] != poolProvider || *request.Spec.ExpirationSeconds != 600 {
					t.Errorf("%s\nthe request is another one: %s of %v: %v", tc.reason, sub, of, asked)
				}
				request.Status.Token = hubSecret
				return tc.answer(request)
			}
			h.r.hub = interceptor.NewClient(h.c, funcs)
			h.settle()
			h.want(fleetv1alpha1.ConditionKubeconfigReady, tc.want)
			if n := cloud.asked.Load(); n != tc.asks {
				t.Errorf("%s\nwant %d requests to the endpoint, got %d", tc.reason, tc.asks, n)
			}
			for _, c := range h.get().Status.Conditions {
				if strings.Contains(c.Message, hubSecret) {
					t.Errorf("%s\nthe token is told: %s", tc.reason, c.Message)
				}
			}
		})
	}
}

// TestTokenIsKeptWhileTheHubGivesNone has the hub fail when another token is due.
func TestTokenIsKeptWhileTheHubGivesNone(t *testing.T) {
	now := time.Now()
	works, expired := now.Add(10*time.Minute), now.Add(-time.Second)
	for name, tc := range map[string]struct {
		reason  string
		expires time.Time
		err     error
		kept    bool
	}{
		"Fails":           {"What there is works still.", works, errHub, true},
		"FailsForTooLong": {"It works no more.", expired, errHub, false},
		"Refuses":         {"The right was taken away, and what it gave goes with it.", works, notGranted("shop-importer"), false},
	} {
		t.Run(name, func(t *testing.T) {
			made := madeToken{token: &oauth2.Token{AccessToken: "made", Expiry: tc.expires}, at: now.Add(-time.Hour)}
			token, again, err := made.unlessRefused(tc.err, now)
			if (token != nil) != tc.kept || tc.kept && (again != retry || err != nil) || !tc.kept && !errors.Is(err, tc.err) {
				t.Errorf("%s\nwant it kept: %t; got %v, again in %s, %v", tc.reason, tc.kept, token, again, err)
			}
		})
	}
}

// TestIdentityIsWithdrawnWithTheGrant: the token that was made would work for an hour; its Secret goes at the next
// look, also while something else stops the import.
func TestIdentityIsWithdrawnWithTheGrant(t *testing.T) {
	for name, stops := range map[string]bool{"AtTheNextLook": false, "WhateverStopsTheImport": true} {
		t.Run(name, func(t *testing.T) {
			h, _ := importWithIdentity(t)
			h.connected()
			if stops {
				config := h.object(config("ProviderConfig", "", "").GetObjectKind().GroupVersionKind(), h.key.Namespace, "customer")
				if err := h.c.Delete(t.Context(), config); err != nil {
					t.Fatal(err)
				}
			}
			h.hub.denied = "create serviceaccounts."
			h.isWithdrawn(fleetv1alpha1.ReasonHubServiceAccountNotAllowed)
			imp := h.get()
			for _, c := range imp.Status.Conditions {
				if c.Type == fleetv1alpha1.ConditionKubeconfigReady && !strings.Contains(c.Message, `get the ServiceAccount "shop-importer" and create serviceaccounts/token`) {
					t.Errorf("the message does not say what is missing: %s", c.Message)
				}
			}
		})
	}
}

// TestServiceAccountOfTheHubIsOfOneImport: the attacker may write ClusterImports in the namespace, and names a
// ServiceAccount that Masthead may use, for a cluster of theirs. Only an import that whoever may write the
// ServiceAccount gave it to has a token of it be asked for; whoever takes it back withdraws what was made with it.
func TestServiceAccountOfTheHubIsOfOneImport(t *testing.T) {
	const notAllowed = fleetv1alpha1.ReasonCredentialsNotAllowed
	account := func(labels ...string) []client.Object {
		meta := metav1.ObjectMeta{Namespace: "customers", Name: "shop-importer", Labels: map[string]string{}}
		for _, value := range labels {
			meta.Labels[fleetv1alpha1.ImportCredentialsLabel] = value
		}
		return []client.Object{&corev1.ServiceAccount{ObjectMeta: meta}}
	}
	for name, tc := range map[string]struct {
		reason string
		hub    []client.Object
		// fails is what the hub answers to whoever gets the ServiceAccount.
		fails error
		// want is why there is no token; "" for a token.
		want string
	}{
		"This":    {reason: "It is for this import.", hub: account("import-uid")},
		"All":     {reason: "It is for every import of the namespace.", hub: account("true")},
		"None":    {reason: "The grant alone says nothing of who may have the identity.", hub: account(), want: notAllowed},
		"Another": {reason: "It is for another import.", hub: account("another-uid"), want: notAllowed},
		"Name":    {reason: "Somebody else could make an import of the name.", hub: account("shop"), want: notAllowed},
		"Empty":   {reason: "It says nothing.", hub: account(""), want: notAllowed},
		"Deleted": {reason: "It was deleted.", want: fleetv1alpha1.ReasonHubServiceAccountNotFound},
		"Forbidden": {
			reason: "Masthead may not see for whom it is.", hub: account("true"), want: fleetv1alpha1.ReasonHubServiceAccountNotAllowed,
			fails: apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "shop-importer", errors.New("no such right")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := &cloudOf{sts: answering(http.StatusOK, exchanged)}
			server, ca := tokenServer(t, cloud.ServeHTTP)
			clock := clocktesting.NewFakeClock(time.Now())
			minted, err := newTokens([]string{server.URL + "/"}, ca, clock)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			hub := interceptor.NewClient(fake.NewClientBuilder().WithObjects(tc.hub...).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if tc.fails != nil {
						return tc.fails
					}
					return c.Get(ctx, key, o, opts...)
				},
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					review, ok := o.(*authorizationv1.SelfSubjectAccessReview)
					if !ok {
						t.Fatalf("%s\na %T is created", tc.reason, o)
					}
					review.Status.Allowed = true
					return nil
				},
				SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, o client.Object, _ ...client.SubResourceCreateOption) error {
					asked++
					if request, ok := o.(*authenticationv1.TokenRequest); ok {
						request.Status.Token = hubSecret
					}
					return nil
				},
			})
			imp := anImport()
			imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{
				Source: fleetv1alpha1.KubeconfigSourceGoogleServiceAccount,
				Google: &fleetv1alpha1.GoogleServiceAccount{WorkloadIdentity: googleIdentity(server, "")},
			}
			r := &Reconciler{
				hub: hub, live: hub, clock: clock, tokens: minted, places: newPlaces(DefaultMaxConcurrentReconciles, func(types.NamespacedName) {}),
			}
			token, err := r.minted(t.Context(), newPass(imp), imp.Spec.KubeconfigSource())
			if tc.want == "" {
				if err != nil || token != "federated" || asked != 1 || cloud.asked.Load() != 1 {
					t.Errorf("%s\nwant a token, got %q, %v", tc.reason, token, err)
				}
				return
			}
			refused, ok := errors.AsType[*stopError](err)
			if !ok || refused.condition.Reason != tc.want || !refused.withdrawn {
				t.Fatalf("%s\nwant %s, and what there is withdrawn, got %v", tc.reason, tc.want, err)
			}
			if asked > 0 || cloud.asked.Load() > 0 {
				t.Errorf("%s\nthe hub was asked for %d tokens, and the cloud for %d", tc.reason, asked, cloud.asked.Load())
			}
			if tc.want == notAllowed && !strings.Contains(err.Error(), "fleet.masthead.dev/import-credentials=import-uid") {
				t.Errorf("%s\nthe message does not say what to add: %v", tc.reason, err)
			}
		})
	}
}
