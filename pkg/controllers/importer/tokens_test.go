// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/pem"
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
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/test/fakecloud"
)

// tokenServer answers each request for a token by what answer says.
func tokenServer(t *testing.T, answer http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func googleKey(t *testing.T, tokenURI string) []byte {
	t.Helper()
	key, err := fakecloud.GoogleKey(tokenURI)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestTokensAreRefreshedBeforeTheyExpire(t *testing.T) {
	var asked atomic.Int64
	fails := atomic.Bool{}
	server, ca := tokenServer(t, func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		if err := r.ParseForm(); err != nil || r.Form.Get("assertion") == "" && r.Form.Get("client_secret") != "secret" {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, asked.Add(1))
	})
	requests := map[string]func() tokenRequest{
		"Google": func() tokenRequest {
			r, err := googleRequest(googleKey(t, server.URL+"/token"))
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		"Azure": func() tokenRequest {
			return azureRequest(&fleetv1alpha1.AzureServicePrincipal{
				TenantID: "11111111-2222-3333-4444-555555555555", ClientID: "c", AuthorityHost: server.URL,
			}, []byte("secret\n"))
		},
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			fails.Store(false)
			clock := clocktesting.NewFakeClock(time.Now())
			minted, err := newTokens([]string{server.URL + "/"}, ca, clock)
			if err != nil {
				t.Fatal(err)
			}
			key := types.NamespacedName{Namespace: "a", Name: name}
			r := request()
			get := func() string {
				t.Helper()
				token, _, err := minted.get(t.Context(), key, r, freely)
				if err != nil {
					t.Fatal(err)
				}
				return token.AccessToken
			}
			first := get()
			if again := get(); again != first {
				t.Errorf("a token that is fresh is kept: got %s and then %s", first, again)
			}
			clock.Step(55 * time.Minute)
			second := get()
			if second == first {
				t.Error("a token that is about to expire is replaced")
			}
			clock.Step(55 * time.Minute)
			fails.Store(true)
			if kept := get(); kept != second {
				t.Errorf("a token that still works is kept while there is no other: want %s, got %s", second, kept)
			}
			clock.Step(10 * time.Minute)
			if _, _, err := minted.get(t.Context(), key, r, freely); err == nil {
				t.Error("a token that has expired is not handed out")
			}
			minted.forget(key)
		})
	}
}

// TestTokenGoesToNoOtherHost: the attacker names a token endpoint of their own in a key file, or redirects from one
// that is allowed.
func TestTokenGoesToNoOtherHost(t *testing.T) {
	var reached atomic.Int64
	other, _ := tokenServer(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	allowed, ca := tokenServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/token", http.StatusTemporaryRedirect)
	})
	minted, err := newTokens([]string{allowed.URL + "/token"}, ca, clocktesting.NewFakeClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		endpoint string
		denied   bool
	}{
		"Other":     {other.URL + "/token", true},
		"OtherPath": {allowed.URL + "/token/../other", true},
		"PlainHTTP": {strings.Replace(allowed.URL, "https", "http", 1) + "/token", true},
		"WithUser":  {strings.Replace(allowed.URL, "https://", "https://user@", 1) + "/token", true},
		"Redirect":  {allowed.URL + "/token", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := googleRequest(googleKey(t, tc.endpoint))
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = minted.get(t.Context(), types.NamespacedName{Name: name}, r, freely)
			if err == nil || errors.Is(err, errEndpointNotAllowed) != tc.denied {
				t.Errorf("get(...): want an error, not allowed: %v; got %v", tc.denied, err)
			}
		})
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("another host was sent %d requests", n)
	}
}

// TestTokenErrorsHoldNoSecrets: the attacker reads what an endpoint repeats in the status of the import.
func TestTokenErrorsHoldNoSecrets(t *testing.T) {
	server, ca := tokenServer(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		http.Error(w, r.Form.Encode(), http.StatusBadRequest)
	})
	minted, err := newTokens([]string{server.URL + "/"}, ca, clocktesting.NewFakeClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	r := azureRequest(&fleetv1alpha1.AzureServicePrincipal{TenantID: "t", ClientID: "c", AuthorityHost: server.URL}, []byte("hunter2"))
	_, _, err = minted.get(t.Context(), types.NamespacedName{}, r, freely)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "400") {
		t.Errorf("get(...): want an error with the status and without the secret, got %v", err)
	}
}

func TestGoogleKeysOfOtherTypesAreRefused(t *testing.T) {
	for _, key := range []string{
		`{"type":"external_account","credential_source":{"file":"/var/run/secrets/token"}}`,
		`{"type":"external_account","credential_source":{"executable":{"command":"id"}}}`,
		`{"type":"authorized_user"}`, `{}`, `nonsense`,
	} {
		if _, err := googleRequest([]byte(key)); err == nil {
			t.Errorf("googleRequest(%s): want an error", key)
		}
	}
}

// TestKubeconfigWithExecIsRefused: the attacker has the imported cluster's kubeconfig run a program in the hub.
func TestKubeconfigWithExecIsRefused(t *testing.T) {
	r := &Reconciler{}
	kubeconfig := `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://cluster.example.org"}}]
users: [{name: u, user: %s}]
`
	for name, user := range map[string]string{
		"Exec":          `{exec: {apiVersion: client.authentication.k8s.io/v1, command: kubelogin}}`,
		"AuthProvider":  `{auth-provider: {name: gcp}}`,
		"Impersonation": `{token: t, as: admin}`,
		"File":          `{tokenFile: /var/run/secrets/token}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.sanitised(fmt.Appendf(nil, kubeconfig, user), fleetv1alpha1.ImportCloudAKS)
			var stop *stopError
			if !errors.As(err, &stop) || stop.condition.Reason != fleetv1alpha1.ReasonKubeconfigRefused {
				t.Errorf("sanitised(...): want %s, got %v", fleetv1alpha1.ReasonKubeconfigRefused, err)
			}
		})
	}
	content, err := r.sanitised(fmt.Appendf(nil, kubeconfig, "{token: t}"), fleetv1alpha1.ImportCloudEKS)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err := credentials.Parse(content, credentials.Options{}); err != nil || parsed.Token() != "t" {
		t.Errorf("what is left of a good kubeconfig works: %v", err)
	}
}

func TestAllows(t *testing.T) {
	for _, tc := range []struct {
		list, namespace string
		want            bool
	}{
		{"", "a", false}, {"a", "a", true}, {"b, a", "a", true}, {"aa", "a", false}, {"*", "a", true}, {"a*", "ab", false},
	} {
		if got := allows(tc.list, tc.namespace); got != tc.want {
			t.Errorf("allows(%q, %q): want %v, got %v", tc.list, tc.namespace, tc.want, got)
		}
	}
}

// tokenRequestsHelp is before the counts of requests for tokens.
const tokenRequestsHelp = "# HELP masthead_import_token_requests_total Requests for tokens of imported clusters: of the sources " +
	"that make them, and of ServiceAccounts. Refused: the endpoint answers with an error. Failed: it cannot be reached, or gives no token.\n" +
	"# TYPE masthead_import_token_requests_total counter\n"

// freely enters where there always is a place.
func freely() (leave func(), ok bool) { return func() {}, true }

// TestRefusingEndpointIsAskedSeldom has an import be looked at every second, as when its managed resources change all
// the time, while its endpoint refuses: in an hour it is asked as often as the waits allow, and the counts say so. A
// secret that was mended is used at once, and so is an endpoint that was, when it is asked again.
func TestRefusingEndpointIsAskedSeldom(t *testing.T) {
	var asked atomic.Int64
	status := atomic.Int64{}
	status.Store(http.StatusUnauthorized)
	server, ca := tokenServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if err := r.ParseForm(); err == nil && r.Form.Get("client_secret") == "mended" || status.Load() == http.StatusOK {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"access_token":"token","token_type":"Bearer","expires_in":3600}`)
			return
		}
		http.Error(w, "no", int(status.Load()))
	})
	clock := clocktesting.NewFakeClock(time.Now())
	minted, err := newTokens([]string{server.URL + "/", "https://nobody.example.org/"}, ca, clock)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	minted.register(registry)
	request := func(secret string) tokenRequest {
		return azureRequest(&fleetv1alpha1.AzureServicePrincipal{TenantID: "t", ClientID: "c", AuthorityHost: server.URL}, []byte(secret))
	}
	key := types.NamespacedName{Namespace: "a", Name: "shop"}
	look := func(secret string) error {
		_, _, err := minted.get(t.Context(), key, request(secret), freely)
		return err
	}
	for range 3600 {
		if err := look("wrong"); err == nil || !strings.Contains(err.Error(), "401") {
			t.Fatalf("want what the endpoint said, also while it is not asked, got %v", err)
		}
		clock.Step(time.Second)
	}
	// After 0, 20, 60, 140 and 300 seconds, and then every five minutes.
	if n := asked.Load(); n != 15 {
		t.Errorf("want 15 requests in an hour, got %d", n)
	}
	if err := look("mended"); err != nil {
		t.Errorf("another secret does not wait: %v", err)
	}
	if err := look("wrong"); err == nil {
		t.Error("the token of one secret is not given for another one")
	}
	status.Store(http.StatusOK)
	clock.Step(resync)
	if err := look("wrong"); err != nil {
		t.Errorf("an endpoint that gives tokens again is asked again: %v", err)
	}
	want := tokenRequestsHelp + fmt.Sprintf(`masthead_import_token_requests_total{result="failed",token_endpoint="%[1]s/"} 0
masthead_import_token_requests_total{result="granted",token_endpoint="%[1]s/"} 2
masthead_import_token_requests_total{result="refused",token_endpoint="%[1]s/"} 16
masthead_import_token_requests_total{result="failed",token_endpoint="imported-clusters"} 0
masthead_import_token_requests_total{result="granted",token_endpoint="imported-clusters"} 0
masthead_import_token_requests_total{result="refused",token_endpoint="imported-clusters"} 0
masthead_import_token_requests_total{result="failed",token_endpoint="https://nobody.example.org/"} 0
masthead_import_token_requests_total{result="granted",token_endpoint="https://nobody.example.org/"} 0
masthead_import_token_requests_total{result="refused",token_endpoint="https://nobody.example.org/"} 0
`, server.URL)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestTokenIsKeptWhileItsEndpointFails: it is looked at again when it expires, at the latest.
func TestTokenIsKeptWhileItsEndpointFails(t *testing.T) {
	var asked atomic.Int64
	server, ca := tokenServer(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 {
			http.Error(w, "no", http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"access_token":"token","token_type":"Bearer","expires_in":3600}`)
	})
	clock := clocktesting.NewFakeClock(time.Now())
	minted, err := newTokens([]string{server.URL + "/"}, ca, clock)
	if err != nil {
		t.Fatal(err)
	}
	r := azureRequest(&fleetv1alpha1.AzureServicePrincipal{TenantID: "t", ClientID: "c", AuthorityHost: server.URL}, []byte("secret"))
	var expires time.Time
	for looks := 0; ; looks++ {
		token, again, err := minted.get(t.Context(), types.NamespacedName{Name: "shop"}, r, freely)
		if err != nil {
			if clock.Now().Before(expires) || looks < 3 {
				t.Errorf("the token works until %s, and was given up at %s: %v", expires, clock.Now(), err)
			}
			break
		}
		if expires = token.Expiry; again <= 0 || clock.Now().Add(again).After(expires) {
			t.Fatalf("want a look before it expires, got one in %s", again)
		}
		clock.Step(again)
	}
	// At 50 minutes, and 20, 60, 140 and 300 seconds later.
	if n := asked.Load(); n != 6 && n != 7 {
		t.Errorf("want few requests, got %d", n)
	}
}

// TestBackOffOutlivesAWithdrawal: whoever withdraws credentials and gives them again, or deletes the import and creates
// it anew, does not have an endpoint that refuses be asked more often.
func TestBackOffOutlivesAWithdrawal(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	minted, err := newTokens(nil, nil, clock)
	if err != nil {
		t.Fatal(err)
	}
	key := types.NamespacedName{Namespace: "a", Name: "shop"}
	fails := func(key types.NamespacedName) {
		minted.failed[key] = failedRequest{hash: "h", err: errNoToken, times: 3, until: clock.Now().Add(leftAloneFor(3))}
	}
	isLeftAlone := func() bool {
		_, failed := minted.last(key, tokenRequest{hash: "h"})
		return clock.Now().Before(failed.until)
	}
	fails(key)
	minted.made[key] = madeToken{hash: "h"}
	minted.forget(key)
	if !isLeftAlone() || minted.knows(key) {
		t.Error("want the endpoint left alone, and the token forgotten")
	}
	clock.Step(leftAloneFor(3))
	minted.forget(key)
	if len(minted.failed) > 0 {
		t.Errorf("want nothing kept when its time is over, got %v", minted.failed)
	}
	fails(types.NamespacedName{Name: "long-gone"})
	clock.Step(leftAloneFor(3) + resync)
	for i := range maxFailed {
		fails(types.NamespacedName{Name: fmt.Sprint(i)})
	}
	fails(key)
	minted.forget(key)
	if len(minted.failed) != maxFailed || isLeftAlone() {
		t.Errorf("want their number bounded, got %d", len(minted.failed))
	}
}
