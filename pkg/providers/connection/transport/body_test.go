// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// TestProxyOfTheEnvironmentIsNotUsed has a proxy in the environment, which would resolve names where CheckAddress does
// not see them. Go reads the environment at the first request of a process, so this test comes first. Otherwise it
// would pass regardless of what the transport does.
func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://environment.example.org:3128")
	creds, err := credentials.Parse(connectiontest.Kubeconfig(t, "https://api.example.org", nil, "x"), credentials.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New("fake/ns/a", creds, credentials.Options{}, "test", func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example.org/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := tr.base.Proxy(req); u != nil || err != nil {
		t.Errorf("want no proxy, got %v %v", u, err)
	}
	raw := strings.Replace(string(connectiontest.Kubeconfig(t, "https://api.example.org", nil, "x")),
		`"server":`, `"proxy-url":"http://proxy.example.org:3128","server":`, 1)
	if creds, err = credentials.Parse([]byte(raw), credentials.Options{AllowProxy: true}); err != nil {
		t.Fatal(err)
	}
	if tr, err = New("fake/ns/a", creds, credentials.Options{AllowProxy: true}, "test", func() {}); err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if u, err := tr.base.Proxy(req); err != nil || u == nil || u.Host != "proxy.example.org:3128" {
		t.Errorf("want the kubeconfig's proxy, which is allowed, got %v %v", u, err)
	}
}

// newClient returns a client with limited answers, for a server that speaks HTTP/2 like API servers.
func newClient(t *testing.T, h http.Handler, l Limits) kubernetes.Interface {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	tr := transportTo(t, s)
	tr.owner.Limits = l
	c, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: s.URL, QPS: -1}, &http.Client{Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// padded is a JSON object of exactly n bytes.
func padded(n int, kind string) string {
	head := fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"annotations":{"a":"`, kind)
	const tail = `"}}}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

// send answers with a text.
func send(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body[:len(body)/2])
		w.(http.Flusher).Flush() // The answer has no length in the header.
		_, _ = io.WriteString(w, body[len(body)/2:])
	}
}

// TestAnswersAreBoundedBeforeTheyAreDecoded has servers whose answers would take much more memory than their bytes, or
// are not what a Kubernetes client decodes.
func TestAnswersAreBoundedBeforeTheyAreDecoded(t *testing.T) {
	bounds := Limits{
		Object:  limits.Limits{Bytes: 1000, Cost: 100_000, Depth: 20},
		List:    limits.Limits{Bytes: 200_000, Cost: 1 << 20},
		Failure: limits.Limits{Bytes: 500},
	}.WithDefaults()
	get := func(c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps("ns").Get(t.Context(), "x", metav1.GetOptions{})
		return err
	}
	list := func(c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps("ns").List(t.Context(), metav1.ListOptions{})
		return err
	}
	watch := func(c kubernetes.Interface) error {
		w, err := c.CoreV1().ConfigMaps("ns").Watch(t.Context(), metav1.ListOptions{})
		if err == nil {
			w.Stop()
		}
		return err
	}
	version := func(c kubernetes.Interface) error { _, err := c.Discovery().ServerVersion(); return err }
	resources := func(c kubernetes.Interface) error {
		_, err := c.Discovery().ServerResourcesForGroupVersion("v1")
		return err
	}
	const (
		asJSON = "application/json"
		items  = `{"kind":"ConfigMapList","apiVersion":"v1","items":[`
	)
	cases := map[string]struct {
		reason string
		server http.HandlerFunc
		call   func(kubernetes.Interface) error
		limit  limits.Limit // Empty if the answer is read.
	}{
		"Object":      {"What is as large as is allowed is read.", send(200, asJSON, padded(1000, "ConfigMap")), get, ""},
		"LargeObject": {"One byte more is not.", send(200, asJSON, padded(1001, "ConfigMap")), get, limits.LimitBytes},
		"WithLength": {"Nor with a length in the header.", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", asJSON)
			_, _ = io.WriteString(w, padded(1001, "ConfigMap"))
		}, get, limits.LimitBytes},
		"List":            {"Lists may be larger.", send(200, asJSON, padded(200_000, "ConfigMapList")), list, ""},
		"LargeList":       {"And have a limit.", send(200, asJSON, padded(200_001, "ConfigMapList")), list, limits.LimitBytes},
		"EmptyItems":      {"Few bytes that become many are refused.", send(200, asJSON, items+strings.Repeat("{},", 10_000)+"{}]}"), list, limits.LimitCost},
		"EmptyResources":  {"In discovery, too.", send(200, asJSON, `{"resources":[`+strings.Repeat("{},", 300)+"{}]}"), resources, limits.LimitCost},
		"Deep":            {"What is nested deeply is refused.", send(200, asJSON, strings.Repeat("[", 21)), version, limits.LimitDepth},
		"Failure":         {"An error is read.", send(500, asJSON, padded(500, "Status")), get, "none"},
		"LargeFailure":    {"It has a limit of its own.", send(500, asJSON, padded(501, "Status")), list, limits.LimitBytes},
		"Endless":         {"What never ends is not read for ever.", connectiontest.Endless, get, "none"},
		"Protobuf":        {"Protobuf is refused.", send(200, "application/vnd.kubernetes.protobuf", "k8s\x00"), get, limits.LimitContentType},
		"TextEvents":      {"Text is no event.", send(200, "text/plain", `{"type":"BOOKMARK","object":{}}`), watch, limits.LimitContentType},
		"YAML":            {"So is YAML.", send(200, "application/yaml", "a: &a []"), get, limits.LimitContentType},
		"CBOR":            {"And CBOR.", send(200, "application/cbor", "\xd9\xd9\xf7\xa0"), get, limits.LimitContentType},
		"NoContentType":   {"Without a type it is taken for JSON.", send(200, "", "k8s\x00"), get, limits.LimitSyntax},
		"PageOfAProxy":    {"Of an error of a proxy, the status is enough.", send(502, "text/html", strings.Repeat("<p>", 100_000)), get, "none"},
		"Redirect":        {"A redirect is refused.", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, get, limits.LimitRedirect},
		"RedirectNowhere": {"Also without an address.", send(302, asJSON, "{}"), get, limits.LimitRedirect},
		"Gzip":            {"What is compressed is refused.", gzipped, get, limits.LimitEncoding},
		"LargeHeader": {"Headers are limited.", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 2*maxResponseHeaderBytes))
			_, _ = io.WriteString(w, "{}")
		}, version, "none"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.call(newClient(t, tc.server, bounds))
			var refused *limits.Error
			switch {
			case tc.limit == "" && err != nil:
				t.Errorf("%s\nwant it read, got %v", tc.reason, err)
			case tc.limit == "none" && (err == nil || errors.Is(err, limits.ErrRefused)):
				t.Errorf("%s\nwant an error that is no refusal, got %v", tc.reason, err)
			case tc.limit != "" && tc.limit != "none" && (!errors.As(err, &refused) || refused.Limit != tc.limit):
				t.Errorf("%s\nwant it refused for %s, got %v", tc.reason, tc.limit, err)
			}
		})
	}
}

func gzipped(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = io.WriteString(z, padded(1<<20, "ConfigMap"))
	_ = z.Close()
}

func TestOnlyPlainJSONIsRequested(t *testing.T) {
	cases := map[string]struct{ reason, accept, want string }{
		"Nothing":  {"JSON is requested.", "", "application/json"},
		"Anything": {"Not just anything.", "*/*", "application/json"},
		"Protobuf": {"Protobuf is left out.", "application/vnd.kubernetes.protobuf,application/json", "application/json"},
		"Only":     {"Also where nothing else was wanted.", "application/vnd.kubernetes.protobuf", "application/json"},
		"Metadata": {
			"The form of the answer stays.",
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
			"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
		},
		"Broken": {"What cannot be read is left out.", "application/json;;;=,;", "application/json"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Accept": {tc.accept}}
			if onlyJSON(h); h.Get("Accept") != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, h.Get("Accept"))
			}
		})
	}
	var accepted atomic.Value
	c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted.Store(r.Header.Get("Accept-Encoding") + r.Header.Get("Accept"))
		send(200, "application/json", "{}")(w, r)
	}), Limits{}.WithDefaults())
	if _, err := c.CoreV1().ConfigMaps("ns").Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if got, _ := accepted.Load().(string); got != "application/json" {
		t.Errorf("want plain JSON requested, not %q", got)
	}
}

func TestEventsOfAWatchAreLimited(t *testing.T) {
	event := func(n int) string {
		const head, tail = `{"type":"MODIFIED","object":`, "}\n"
		return head + padded(n-len(head)-len(tail), "ConfigMap") + tail
	}
	c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 10 { // Together far more than the limit of one.
			_, _ = io.WriteString(w, event(1000))
		}
		_, _ = io.WriteString(w, event(2000))
	}), Limits{Event: limits.Limits{Bytes: 1001}}.WithDefaults())
	w, err := c.CoreV1().ConfigMaps("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	seen := 0
	for e := range w.ResultChan() {
		if _, ok := e.Object.(*corev1.ConfigMap); ok {
			seen++
			continue
		}
		status, _ := e.Object.(*metav1.Status)
		if e.Type != watch.Error || status == nil || !strings.Contains(status.Message, "it has more than 1001 bytes") {
			t.Errorf("want an error that says what is wrong, got %v", e)
		}
	}
	if seen != 10 {
		t.Errorf("want the 10 events that are not too large, got %d", seen)
	}
}

func TestIsCollection(t *testing.T) {
	for path, want := range map[string]bool{
		"/readyz": false, "/api": false, "/api/v1": false, "/apis": false, "/apis/apps": false,
		"/apis/apps/v1": false, "/openapi/v3/apis/apps/v1": false, "": false,
		"/api/v1/pods": true, "/api/v1/namespaces": true, "/api/v1/namespaces/ns/pods": true,
		"/apis/apps/v1/deployments": true, "/apis/apps/v1/namespaces/ns/deployments": true,
		"/api/v1/namespaces/ns": false, "/api/v1/namespaces/ns/pods/x": false, "/api/v1/nodes/x/status": false,
		"/apis/apps/v1/namespaces/ns/deployments/x/scale": false,
	} {
		if got := isCollection(path); got != want {
			t.Errorf("%s: want %t, got %t", path, want, got)
		}
	}
}
