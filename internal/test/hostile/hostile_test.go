// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// quick are options with which every answer ends soon.
func quick() Options {
	return Options{MaxBytes: 8 << 20, MaxTime: 300 * time.Millisecond, Drip: 10 * time.Millisecond}
}

func TestAttacksSayWhatTheyAre(t *testing.T) {
	names := map[string]bool{}
	for _, a := range Attacks() {
		if len(validation.IsDNS1123Label(a.Name)) > 0 || names[a.Name] {
			t.Errorf("%q cannot be the name of one cluster", a.Name)
		}
		names[a.Name] = true
		if a.Harm == "" || a.Guard == "" {
			t.Errorf("%s does not say what harm it intends and what answers it", a.Name)
		}
		if (a.answer == nil) == (a.converse == nil) {
			t.Errorf("%s must answer requests or converse", a.Name)
		}
		if got, ok := Named(a.Name); !ok || got.Harm != a.Harm {
			t.Errorf("%s is not found by its name", a.Name)
		}
	}
	if _, ok := Named("kind"); ok {
		t.Error("an attack is found that does not exist")
	}
}

// client returns a client of one server, which follows no redirects.
func client(t *testing.T, s *Server) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.Authority()) {
		t.Fatal("the authority is no certificate")
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableCompression: true,
		TLSHandshakeTimeout: time.Second,
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ask sends a request and reads the whole answer, but keeps only its beginning.
func ask(ctx context.Context, c *http.Client, s *Server, method, path, body string) (code int, start string, size int64, err error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, "", 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	head, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return resp.StatusCode, string(head), int64(len(head)), err
	}
	rest, err := io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, string(head), int64(len(head)) + rest, err
}

const namespaces = "/api/v1/namespaces"

// TestServersPassProbesWhereTheirHarmComesLater sends requests that come before a connection.
func TestServersPassProbesWhereTheirHarmComesLater(t *testing.T) {
	for _, attack := range Attacks() {
		t.Run(attack.Name, func(t *testing.T) {
			s, err := Start(t.Context(), attack, quick())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c := client(t, s)
			defer c.CloseIdleConnections()
			ready, _, size, err := ask(t.Context(), c, s, http.MethodGet, "/readyz", "")
			if size >= 64<<10 {
				err = nil // A probe reads no further, and does not see how an endless answer ends.
			}
			ready2, identity, _, err2 := ask(t.Context(), c, s, http.MethodGet, namespaces+"/kube-system", "")
			connects := err == nil && ready == http.StatusOK && err2 == nil && ready2 == http.StatusOK && strings.Contains(identity, `"uid":"`) &&
				len(identity) < 64<<10
			// Only a client with a limit notices what is wrong with the headers.
			if connects != attack.Connects && attack.Name != "huge-headers" {
				t.Errorf("want connects %v, got %v: %d %v, %d %v", attack.Connects, connects, ready, err, ready2, err2)
			}
		})
	}
}

// TestEveryAnswerIsBoundedAndNothingIsLeftBehind sends each server requests of all kinds at once, reads the whole
// answers, and closes the server.
func TestEveryAnswerIsBoundedAndNothingIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, attack := range Attacks() {
		t.Run(attack.Name, func(t *testing.T) {
			s, err := Start(t.Context(), attack, quick())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(s.URL, "https://127.0.0.1:") {
				t.Errorf("it listens at %s", s.URL)
			}
			c := client(t, s)
			type result struct {
				path string
				size int64
			}
			paths := []string{
				"/readyz", "/version", namespaces + "/kube-system", namespaces + "?limit=500", "/api/v1/secrets", namespaces + "?watch=1",
				namespaces + "?watch=1&sendInitialEvents=true", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v2", "/openapi/v3",
			}
			results := make(chan result, len(paths)+1)
			for _, path := range paths {
				go func() {
					_, _, size, _ := ask(t.Context(), c, s, http.MethodGet, path, "")
					results <- result{path, size}
				}()
			}
			go func() {
				_, _, size, _ := ask(t.Context(), c, s, http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"x"}}`)
				results <- result{"POST", size}
			}()
			for range len(paths) + 1 {
				if r := <-results; r.size > quick().MaxBytes {
					t.Errorf("the answer to %s has %d bytes", r.path, r.size)
				}
			}
			if s.Trapped() > 0 {
				t.Error("a client connected to an address that it must not reach")
			}
			c.CloseIdleConnections()
			s.Close()
			if n := s.Connections(); n > 0 {
				t.Errorf("%d connections are open when the server is closed", n)
			}
		})
	}
	err := testenv.Poll(t.Context(), testenv.Patience, func(context.Context) (bool, error) {
		return runtime.NumGoroutine() <= before, nil
	})
	if err != nil {
		stacks := make([]byte, 1<<20)
		t.Errorf("want %d goroutines, got %d:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
	}
}

// TestCloseEndsWhatHangs closes servers while a client waits for an endless answer.
func TestCloseEndsWhatHangs(t *testing.T) {
	for _, name := range []string{"never-answers", "silent", "slow-handshake", "drip", "endless-list", "silent-streams"} {
		t.Run(name, func(t *testing.T) {
			attack, _ := Named(name)
			s, err := Start(t.Context(), attack, Options{})
			if err != nil {
				t.Fatal(err)
			}
			c := client(t, s)
			defer c.CloseIdleConnections()
			done := make(chan error, 1)
			go func() {
				_, _, _, err := ask(t.Context(), c, s, http.MethodGet, namespaces+"?watch=1&sendInitialEvents=true", "")
				if err == nil { // A stream that is refused does not hang.
					_, _, _, err = ask(t.Context(), c, s, http.MethodGet, namespaces, "")
				}
				done <- err
			}()
			err = testenv.Poll(t.Context(), testenv.Patience, func(context.Context) (bool, error) {
				return s.Connections() > 0, nil
			})
			if err != nil {
				t.Fatal("no client connected")
			}
			s.Close()
			if err := <-done; err == nil {
				t.Error("an answer without end has ended well")
			}
		})
	}
}

func TestRequestsAreCounted(t *testing.T) {
	s, err := StartHonest(t.Context(), NewHonest())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := client(t, s)
	defer c.CloseIdleConnections()
	for _, path := range []string{"/readyz", "/api", namespaces, namespaces + "/default", "/openapi/v2"} {
		if code, _, _, err := ask(t.Context(), c, s, http.MethodGet, path, ""); err != nil || code != http.StatusOK {
			t.Errorf("%s: %d, %v", path, code, err)
		}
	}
	got := fmt.Sprint(s.Requests(""), s.Requests("probe"), s.Requests("discovery"), s.Requests("openapi"), s.Requests("list"), s.Requests("get"), s.Requests("watch"))
	if want := "5 1 1 1 1 1 0"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}
