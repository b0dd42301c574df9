// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

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
	"testing/iotest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// TestProxyOfTheEnvironmentIsNotUsed has a proxy in the environment, which would resolve names where CheckAddress does
// not see them. Go reads the environment at the first request of a process, so that this test stands first, lest it pass
// whatever the transport does.
func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://environment.example.org:3128")
	creds, err := credentials.Parse(kubeconfigFor(t, "https://api.example.org", nil, "x"), credentials.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := newTransport("fake/ns/a", creds, credentials.Options{}, "test", func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example.org/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := tr.base.Proxy(req); u != nil || err != nil {
		t.Errorf("want no proxy, got %v %v", u, err)
	}
	raw := strings.Replace(string(kubeconfigFor(t, "https://api.example.org", nil, "x")),
		`"server":`, `"proxy-url":"http://proxy.example.org:3128","server":`, 1)
	if creds, err = credentials.Parse([]byte(raw), credentials.Options{AllowProxy: true}); err != nil {
		t.Fatal(err)
	}
	if tr, err = newTransport("fake/ns/a", creds, credentials.Options{AllowProxy: true}, "test", func() {}); err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	if u, err := tr.base.Proxy(req); err != nil || u == nil || u.Host != "proxy.example.org:3128" {
		t.Errorf("want the kubeconfig's proxy, which is allowed, got %v %v", u, err)
	}
}

// clientOf returns a client whose answers are limited, of a server that speaks HTTP/2 as API servers do.
func clientOf(t *testing.T, h http.Handler, l Limits) kubernetes.Interface {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	tr := proberFor(t, s.URL, caOf(s), credentials.Options{AllowLoopback: true}, time.Second).transport
	tr.limits = l
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

func TestAnswersAreLimited(t *testing.T) {
	limits := Limits{Object: 1000, List: 2000}
	get := func(c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps("ns").Get(t.Context(), "x", metav1.GetOptions{})
		return err
	}
	list := func(c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps("ns").List(t.Context(), metav1.ListOptions{})
		return err
	}
	send := func(n int, kind string, status int, chunked bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			body := padded(n, kind)
			if chunked { // Without a length in the header.
				_, _ = io.WriteString(w, body[:n/2])
				w.(http.Flusher).Flush()
				body = body[n/2:]
			}
			_, _ = io.WriteString(w, body)
		}
	}
	cases := map[string]struct {
		reason string
		server http.HandlerFunc
		call   func(kubernetes.Interface) error
		large  bool
	}{
		"Object":          {"What is as large as is allowed is read.", send(1000, "ConfigMap", 200, false), get, false},
		"ObjectChunked":   {"Its end is found.", send(1000, "ConfigMap", 200, true), get, false},
		"LargeObject":     {"One byte more is not.", send(1001, "ConfigMap", 200, false), get, true},
		"LargeChunked":    {"Nor without a length in the header.", send(1001, "ConfigMap", 200, true), get, true},
		"List":            {"Lists may be larger.", send(2000, "ConfigMapList", 200, true), list, false},
		"LargeList":       {"And have a limit.", send(2001, "ConfigMapList", 200, true), list, true},
		"ErrorToList":     {"An error is no list.", send(1500, "Status", 500, true), list, true},
		"EndlessAnswer":   {"What never ends is not read for ever.", endless, get, true},
		"EndlessUnlisted": {"Whatever is asked for.", endless, func(c kubernetes.Interface) error { _, err := c.Discovery().ServerVersion(); return err }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.call(clientOf(t, tc.server, limits))
			if got := errors.Is(err, errAnswerTooLarge); got != tc.large || !tc.large && err != nil {
				t.Errorf("%s\nwant too large %t, got %v", tc.reason, tc.large, err)
			}
		})
	}
}

func TestCompressionIsNeitherAskedForNorUndone(t *testing.T) {
	var asked atomic.Value
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, padded(1<<20, "ConfigMap"))
		_ = z.Close()
	}), Limits{}.withDefaults())
	if _, err := c.CoreV1().ConfigMaps("ns").Get(t.Context(), "x", metav1.GetOptions{}); err == nil {
		t.Error("an answer that nobody asked to be compressed was unpacked")
	}
	if got := asked.Load(); got != "" {
		t.Errorf("compression was asked for: %q", got)
	}
}

func TestEventsOfAWatchAreLimited(t *testing.T) {
	event := func(n int) string {
		const head, tail = `{"type":"MODIFIED","object":`, "}\n"
		return head + padded(n-len(head)-len(tail), "ConfigMap") + tail
	}
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 10 { // Together far more than the limit of one.
			_, _ = io.WriteString(w, event(1000))
		}
		_, _ = io.WriteString(w, event(2000))
	}), Limits{Object: 100, List: 100, WatchEvent: 1000})
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
		if e.Type != watch.Error || status == nil || !strings.Contains(status.Message, errAnswerTooLarge.Error()) {
			t.Errorf("want an error that says what is wrong, got %v", e)
		}
	}
	if seen != 10 {
		t.Errorf("want the 10 events that are not too large, got %d", seen)
	}
}

func TestLimitedEvents(t *testing.T) {
	cases := map[string]struct {
		reason, in string
		ok         bool
	}{
		"Many":          {"Each event is counted by itself.", strings.Repeat(`{"a":"0123456"}`+"\n", 20), true},
		"TooLong":       {"One more byte is too many.", `{"a":"0123456789abc"}`, false},
		"Nested":        {"An inner object is no end.", `{"a":[{},{},{},{},{}]}`, false},
		"BraceInString": {"Nor is a brace in a string.", `{"a":"}}}}}}}}}}}}}}}"}`, false},
		"EscapedQuote":  {"Nor one after an escaped quote.", `{"a":"\"}}}}}}}}}}}}}}"}`, false},
		"EscapedSlash":  {"A backslash that is escaped escapes nothing.", strings.Repeat(`{"a":"\\"}`, 20), true},
		"Space":         {"White space counts.", strings.Repeat(" ", 30), false},
		"NoJSON":        {"What is no event never ends.", strings.Repeat("}", 30), false},
		"Number":        {"Nor does what is no object.", strings.Repeat("1", 30), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, func(r io.Reader) io.Reader { return r }} {
				b := &limitedEvents{ReadCloser: io.NopCloser(wrap(strings.NewReader(tc.in))), limit: 20, err: errAnswerTooLarge}
				got, err := io.ReadAll(b)
				if (err == nil) != tc.ok || tc.ok && string(got) != tc.in || len(got) > 20 && !tc.ok {
					t.Errorf("%s\nwant ok %t, got %q %v", tc.reason, tc.ok, got, err)
				}
				if _, again := b.Read(make([]byte, 1)); !tc.ok && !errors.Is(again, errAnswerTooLarge) {
					t.Errorf("a stream that was too large goes on: %v", again)
				}
			}
		})
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
