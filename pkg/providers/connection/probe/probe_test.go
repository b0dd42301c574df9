// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

func proberFor(t *testing.T, server string, ca []byte, o credentials.Options, timeout time.Duration) Prober {
	t.Helper()
	creds, err := credentials.Parse(connectiontest.Kubeconfig(t, server, ca, "token"), credentials.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := transport.New("fake/ns/a", creds, o, "test", func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return New(tr, timeout)
}

func TestProberAnswers(t *testing.T) {
	code := func(c int) http.HandlerFunc { return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c) } }
	body := func(b string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(b)) }
	}
	type want struct {
		health      metav1.ConditionStatus
		ready       string // reasons, empty if it worked
		uid, uidWhy string
		version     string
	}
	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		want    want
	}{
		"Healthy":      {"All questions get the same good answer.", body(`{"metadata":{"uid":"0b7e9a4c-9d1f-4e0a-8a53-2f6c1d7e8b90"},"gitVersion":"v1.36.3+k3s1"}`), want{health: metav1.ConditionTrue, uid: "0b7e9a4c-9d1f-4e0a-8a53-2f6c1d7e8b90", version: "v1.36.3+k3s1"}},
		"Ill":          {"It answers, and says that it is not well.", code(500), want{health: metav1.ConditionFalse, uidWhy: fleetv1alpha1.ReasonProbeFailed}},
		"Forbidden":    {"It answers, and does not say how it is.", code(403), want{health: metav1.ConditionUnknown, uidWhy: fleetv1alpha1.ReasonForbidden}},
		"NotFound":     {"As above.", code(404), want{health: metav1.ConditionUnknown, uidWhy: fleetv1alpha1.ReasonProbeFailed}},
		"Unauthorized": {"The one answer that is a failure.", code(401), want{health: metav1.ConditionUnknown, ready: fleetv1alpha1.ReasonUnauthorized, uidWhy: fleetv1alpha1.ReasonUnauthorized}},
		"Redirect": {
			"It is not followed.", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://example.org", http.StatusFound)
			},
			want{health: metav1.ConditionFalse, uidWhy: fleetv1alpha1.ReasonAnswerRefused},
		},
		"HostileUID":        {"What would break a condition or a label is not taken.", body(`{"metadata":{"uid":"<b>\n"},"gitVersion":"v1\n.2"}`), want{health: metav1.ConditionTrue, uidWhy: fleetv1alpha1.ReasonProbeFailed}},
		"ClaimedIdentifier": {"A cluster must not call itself by the identifier of another.", body(`{"metadata":{"uid":"prod-eu"}}`), want{health: metav1.ConditionTrue, uidWhy: fleetv1alpha1.ReasonProbeFailed}},
		"UpperCaseUID":      {"Nor be taken for another one because of letters.", body(`{"metadata":{"uid":"0B7E9A4C-9D1F-4E0A-8A53-2F6C1D7E8B90"}}`), want{health: metav1.ConditionTrue, uidWhy: fleetv1alpha1.ReasonProbeFailed}},
		"NoNamespace":       {"An answer that is no namespace identifies nothing.", body(`hello`), want{health: metav1.ConditionTrue, uidWhy: fleetv1alpha1.ReasonProbeFailed}},
		"EndlessAnswer":     {"No more than a little is read.", connectiontest.Endless, want{health: metav1.ConditionTrue, uidWhy: fleetv1alpha1.ReasonProbeFailed}},
		"HangUp":            {"A connection that ends is an error of the network.", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want{health: metav1.ConditionUnknown, ready: fleetv1alpha1.ReasonDialError, uidWhy: fleetv1alpha1.ReasonDialError}},
		"NeverAnswering":    {"Waiting has an end.", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, want{health: metav1.ConditionUnknown, ready: fleetv1alpha1.ReasonDialError, uidWhy: fleetv1alpha1.ReasonDialError}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(tc.handler)
			s.EnableHTTP2 = true
			s.StartTLS()
			defer s.Close()
			timeout := time.Minute // Longer than a busy machine needs.
			if name == "NeverAnswering" {
				timeout = time.Second
			}
			p := proberFor(t, s.URL, connectiontest.Authority(s), credentials.Options{AllowLoopback: true}, timeout)
			var got want
			health, why := p.Ready(t.Context(), "token")
			got.health, got.ready = health, failureReason(why)
			got.uid, why = p.Identity(t.Context(), "token")
			got.uidWhy = failureReason(why)
			got.version = p.Version(t.Context(), "token")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func failureReason(f *condition.Error) string {
	if f == nil {
		return ""
	}
	return f.Reason
}

func TestProberExplainsErrors(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	arrived := atomic.Int32{}
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	defer other.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	allowed := credentials.Options{AllowLoopback: true}
	denied := credentials.Options{AllowLoopback: true, DeniedCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	cases := map[string]struct {
		reason, server string
		ca             []byte
		o              credentials.Options
		timeout        time.Duration // by default more than a busy machine needs, so that no message is about it
		want           *condition.Error
	}{
		"PlainHTTP":    {reason: "It does not speak TLS.", server: strings.Replace(plain.URL, "http:", "https:", 1), o: allowed, want: condition.NewError(fleetv1alpha1.ReasonTLSError, "does not speak TLS")},
		"Authority":    {reason: "No known authority signed the certificate.", server: secure.URL, o: allowed, want: condition.NewError(fleetv1alpha1.ReasonTLSError, "unknown authority")},
		"Name":         {reason: "The certificate is for 127.0.0.1 and example.com.", server: strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), ca: connectiontest.Authority(secure), o: allowed, want: condition.NewError(fleetv1alpha1.ReasonTLSError, "another name")},
		"Refused":      {reason: "No server listens.", server: "https://" + closed.Addr().String(), o: allowed, want: condition.NewError(fleetv1alpha1.ReasonDialError, "refused the connection")},
		"BlackHole":    {reason: "No server answers.", server: connectiontest.BlackHole(t), o: allowed, timeout: time.Second, want: condition.NewError(fleetv1alpha1.ReasonDialError, "did not respond in time")},
		"NoName":       {reason: "The name does not exist.", server: "https://does-not-exist.invalid", o: allowed, want: condition.NewError(fleetv1alpha1.ReasonDialError, "has a name that")},
		"Address":      {reason: "The name leads to an address that is refused: DNS is no way around the check.", server: strings.Replace(other.URL, "127.0.0.1", "localhost", 1), want: condition.NewError(fleetv1alpha1.ReasonEndpointDenied, "does not connect")},
		"Denied":       {reason: "The operator denies the address that the name leads to, though loopback is allowed.", server: strings.Replace(other.URL, "127.0.0.1", "localhost", 1), o: denied, want: condition.NewError(fleetv1alpha1.ReasonEndpointDenied, "does not connect")},
		"DeniedClosed": {reason: "Whether a server listens at a denied address is not reported.", server: strings.Replace("https://"+closed.Addr().String(), "127.0.0.1", "localhost", 1), o: denied, want: condition.NewError(fleetv1alpha1.ReasonEndpointDenied, "does not connect")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			timeout := tc.timeout
			if timeout == 0 {
				timeout = 30 * time.Second
			}
			p := proberFor(t, tc.server, tc.ca, tc.o, timeout)
			for range 2 { // The message must not change from one attempt to the next.
				_, why := p.Ready(t.Context(), "token")
				if why == nil || why.Reason != tc.want.Reason || !strings.Contains(why.Message, tc.want.Message) {
					t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, why)
				}
			}
			if n := p.transport.Dials(); tc.want.Reason == fleetv1alpha1.ReasonEndpointDenied && n != 0 {
				t.Errorf("%d connections were made to an address that is refused", n)
			}
			if n := arrived.Load(); n != 0 {
				t.Errorf("%d requests arrived at an address that is refused", n)
			}
		})
	}
}

// TestProxyAtADeniedAddressIsNotUsed uses a proxy, which the operator allows, at an address that the operator denies.
func TestProxyAtADeniedAddressIsNotUsed(t *testing.T) {
	requests := atomic.Int32{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	through := strings.Replace(proxy.URL, "127.0.0.1", "localhost", 1)
	kubeconfig := bytes.Replace(connectiontest.Kubeconfig(t, "https://api.example.org", nil, "token"),
		[]byte(`"server"`), []byte(`"proxy-url":"`+through+`","server"`), 1)
	for name, tc := range map[string]struct {
		reason   string
		denied   []netip.Prefix
		want     string
		requests int32
	}{
		"Denied":  {"The name of the proxy leads to an address that is denied.", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, fleetv1alpha1.ReasonEndpointDenied, 0},
		"Allowed": {"A proxy that is not denied is used, and fails.", nil, fleetv1alpha1.ReasonDialError, 1},
	} {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			o := credentials.Options{AllowLoopback: true, AllowProxy: true, DeniedCIDRs: tc.denied}
			creds, err := credentials.Parse(kubeconfig, o)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := transport.New("fake/ns/a", creds, o, "masthead", func() {})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			_, why := New(tr, 30*time.Second).Ready(t.Context(), "token")
			if failureReason(why) != tc.want || requests.Load() != tc.requests {
				t.Errorf("%s\nwant %s and %d requests, got %v and %d", tc.reason, tc.want, tc.requests, why, requests.Load())
			}
		})
	}
}
