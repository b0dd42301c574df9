// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/oauth2"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token/tokentest"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
)

func googleKey(t *testing.T, tokenURI string) []byte {
	t.Helper()
	key, err := fakecloud.GoogleKey(tokenURI)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestTokensAreRefreshedBeforeTheyExpire(t *testing.T) {
	var requested atomic.Int64
	fails := atomic.Bool{}
	server, ca := tokentest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		if err := r.ParseForm(); err != nil || r.Form.Get("assertion") == "" && r.Form.Get("client_secret") != "secret" {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, requested.Add(1))
	})
	requests := map[string]func() Request{
		"Google": func() Request {
			r, err := GoogleRequest(googleKey(t, server.URL+"/token"))
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		"Azure": func() Request {
			return AzureRequest(&fleetv1alpha1.AzureServicePrincipal{
				TenantID: "11111111-2222-3333-4444-555555555555", ClientID: "c", AuthorityHost: fleetv1alpha1.HTTPSURL(server.URL),
			}, []byte("secret\n"))
		},
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			fails.Store(false)
			clock := clocktesting.NewFakeClock(time.Now())
			minted, err := New([]string{server.URL + "/"}, ca, clock)
			if err != nil {
				t.Fatal(err)
			}
			key := types.NamespacedName{Namespace: "a", Name: name}
			r := request()
			get := func() string {
				t.Helper()
				token, _, err := minted.Get(t.Context(), key, r, freely)
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
			if _, _, err := minted.Get(t.Context(), key, r, freely); err == nil {
				t.Error("a token that has expired is not handed out")
			}
			minted.Forget(key)
		})
	}
}

// TestTokenGoesToNoOtherHost: the attacker names their own token endpoint in a key file, or redirects from one that is
// allowed.
func TestTokenGoesToNoOtherHost(t *testing.T) {
	var reached atomic.Int64
	other, _ := tokentest.Server(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	allowed, ca := tokentest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/token", http.StatusTemporaryRedirect)
	})
	minted, err := New([]string{allowed.URL + "/token"}, ca, clocktesting.NewFakeClock(time.Now()))
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
			r, err := GoogleRequest(googleKey(t, tc.endpoint))
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = minted.Get(t.Context(), types.NamespacedName{Name: name}, r, freely)
			if err == nil || errors.Is(err, ErrEndpointNotAllowed) != tc.denied {
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
	server, ca := tokentest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		http.Error(w, r.Form.Encode(), http.StatusBadRequest)
	})
	minted, err := New([]string{server.URL + "/"}, ca, clocktesting.NewFakeClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	r := AzureRequest(&fleetv1alpha1.AzureServicePrincipal{
		TenantID: "t", ClientID: "c", AuthorityHost: fleetv1alpha1.HTTPSURL(server.URL),
	}, []byte("hunter2"))
	_, _, err = minted.Get(t.Context(), types.NamespacedName{}, r, freely)
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
		if _, err := GoogleRequest([]byte(key)); err == nil {
			t.Errorf("googleRequest(%s): want an error", key)
		}
	}
}

// freely enters at once: there always is a place.
func freely() (leave func(), ok bool) { return func() {}, true }

// TestRefusingEndpointIsQueriedRarely reconciles an import every second, as when its managed resources change all the
// time, while its endpoint refuses: in an hour it is queried as often as the waits allow, and the counts show that. A
// corrected secret is used at once. A corrected endpoint is used when it is queried again.
func TestRefusingEndpointIsQueriedRarely(t *testing.T) {
	var requested atomic.Int64
	status := atomic.Int64{}
	status.Store(http.StatusUnauthorized)
	server, ca := tokentest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		requested.Add(1)
		if err := r.ParseForm(); err == nil && r.Form.Get("client_secret") == "mended" || status.Load() == http.StatusOK {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"access_token":"token","token_type":"Bearer","expires_in":3600}`)
			return
		}
		http.Error(w, "no", int(status.Load()))
	})
	clock := clocktesting.NewFakeClock(time.Now())
	minted, err := New([]string{server.URL + "/", "https://unused.example.org/"}, ca, clock)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	minted.Register(registry)
	request := func(secret string) Request {
		return AzureRequest(&fleetv1alpha1.AzureServicePrincipal{
			TenantID: "t", ClientID: "c", AuthorityHost: fleetv1alpha1.HTTPSURL(server.URL),
		}, []byte(secret))
	}
	key := types.NamespacedName{Namespace: "a", Name: "shop"}
	look := func(secret string) error {
		_, _, err := minted.Get(t.Context(), key, request(secret), freely)
		return err
	}
	for range 3600 {
		if err := look("wrong"); err == nil || !strings.Contains(err.Error(), "401") {
			t.Fatalf("want what the endpoint said, also while it is not queried, got %v", err)
		}
		clock.Step(time.Second)
	}
	// After 0, 20, 60, 140 and 300 seconds, and then every five minutes.
	if n := requested.Load(); n != 15 {
		t.Errorf("want 15 requests in an hour, got %d", n)
	}
	if err := look("mended"); err != nil {
		t.Errorf("another secret does not wait: %v", err)
	}
	if err := look("wrong"); err == nil {
		t.Error("the token of one secret is not given for another one")
	}
	status.Store(http.StatusOK)
	clock.Step(workload.Resync)
	if err := look("wrong"); err != nil {
		t.Errorf("want a token from an endpoint that gives tokens again, got %v", err)
	}
	want := tokentest.RequestsHelp + fmt.Sprintf(`masthead_import_token_requests_total{result="failed",token_endpoint="%[1]s/"} 0
masthead_import_token_requests_total{result="granted",token_endpoint="%[1]s/"} 2
masthead_import_token_requests_total{result="refused",token_endpoint="%[1]s/"} 16
masthead_import_token_requests_total{result="failed",token_endpoint="imported-clusters"} 0
masthead_import_token_requests_total{result="granted",token_endpoint="imported-clusters"} 0
masthead_import_token_requests_total{result="refused",token_endpoint="imported-clusters"} 0
masthead_import_token_requests_total{result="failed",token_endpoint="https://unused.example.org/"} 0
masthead_import_token_requests_total{result="granted",token_endpoint="https://unused.example.org/"} 0
masthead_import_token_requests_total{result="refused",token_endpoint="https://unused.example.org/"} 0
`, server.URL)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestTokenIsKeptWhileItsEndpointFails: it is checked again when it expires, at the latest.
func TestTokenIsKeptWhileItsEndpointFails(t *testing.T) {
	var requested atomic.Int64
	server, ca := tokentest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
		if requested.Add(1) > 1 {
			http.Error(w, "no", http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"access_token":"token","token_type":"Bearer","expires_in":3600}`)
	})
	clock := clocktesting.NewFakeClock(time.Now())
	minted, err := New([]string{server.URL + "/"}, ca, clock)
	if err != nil {
		t.Fatal(err)
	}
	r := AzureRequest(&fleetv1alpha1.AzureServicePrincipal{
		TenantID: "t", ClientID: "c", AuthorityHost: fleetv1alpha1.HTTPSURL(server.URL),
	}, []byte("secret"))
	var expires time.Time
	for looks := 0; ; looks++ {
		token, again, err := minted.Get(t.Context(), types.NamespacedName{Name: "shop"}, r, freely)
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
	if n := requested.Load(); n != 6 && n != 7 {
		t.Errorf("want few requests, got %d", n)
	}
}

// TestBackOffOutlivesAWithdrawal: a user who withdraws credentials and gives them again, or deletes the import and
// creates it again, does not cause more requests to an endpoint that refuses.
func TestBackOffOutlivesAWithdrawal(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	minted, err := New(nil, nil, clock)
	if err != nil {
		t.Fatal(err)
	}
	key := types.NamespacedName{Namespace: "a", Name: "shop"}
	fails := func(key types.NamespacedName) {
		minted.failed[key] = failedRequest{hash: "h", err: workload.ErrNoToken, times: 3, until: clock.Now().Add(workload.LeftAloneFor(3))}
	}
	isLeftAlone := func() bool {
		_, failed := minted.last(key, Request{Hash: "h"})
		return clock.Now().Before(failed.until)
	}
	fails(key)
	minted.made[key] = Made{Hash: "h"}
	minted.Forget(key)
	if !isLeftAlone() || minted.Knows(key) {
		t.Error("want the endpoint left alone, and the token forgotten")
	}
	clock.Step(workload.LeftAloneFor(3))
	minted.Forget(key)
	if len(minted.failed) > 0 {
		t.Errorf("want nothing kept when its time is over, got %v", minted.failed)
	}
	fails(types.NamespacedName{Name: "long-gone"})
	clock.Step(workload.LeftAloneFor(3) + workload.Resync)
	for i := range maxFailed {
		fails(types.NamespacedName{Name: fmt.Sprint(i)})
	}
	fails(key)
	minted.Forget(key)
	if len(minted.failed) != maxFailed || isLeftAlone() {
		t.Errorf("want their number bounded, got %d", len(minted.failed))
	}
}

// TestTokenIsKeptWhileTheHubGivesNone makes the hub fail when another token is due.
func TestTokenIsKeptWhileTheHubGivesNone(t *testing.T) {
	now := time.Now()
	fails, denied := errors.New("no answer"), condition.NewError(fleetv1alpha1.ReasonHubServiceAccountNotAllowed, "denied")
	works, expired := now.Add(10*time.Minute), now.Add(-time.Second)
	for name, tc := range map[string]struct {
		reason  string
		expires time.Time
		err     error
		kept    bool
	}{
		"Fails":           {"What there is works still.", works, fails, true},
		"FailsForTooLong": {"It works no more.", expired, fails, false},
		"Refuses":         {"The right was taken away, and what it gave goes with it.", works, denied, false},
	} {
		t.Run(name, func(t *testing.T) {
			made := Made{Token: &oauth2.Token{AccessToken: "made", Expiry: tc.expires}, At: now.Add(-time.Hour)}
			token, again, err := made.unlessRefused(tc.err, now)
			if (token != nil) != tc.kept || tc.kept && (again != workload.Retry || err != nil) || !tc.kept && !errors.Is(err, tc.err) {
				t.Errorf("%s\nwant it kept: %t; got %v, again in %s, %v", tc.reason, tc.kept, token, again, err)
			}
		})
	}
}
