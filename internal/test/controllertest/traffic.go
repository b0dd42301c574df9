// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// RoundTripper is a function that answers requests.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Traffic sees the requests to one API server, and can change or answer them. Watches are not counted.
type Traffic struct {
	mu     sync.Mutex
	seen   []string
	answer func(*http.Request) *http.Response
	after  func(*http.Request)
	admit  func(map[string]any)
	user   string

	// held is the path of watches that report nothing until release is closed.
	held    string
	release chan struct{}

	// unanswered is how many of the seen requests have no answer yet.
	unanswered atomic.Int32
}

// SetAnswer sets a function that answers requests. A request for which it returns nil is sent to the API server.
func (r *Traffic) SetAnswer(answer func(*http.Request) *http.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// SetAfter sets a function that is called when a request has its answer, before the answer is passed on.
func (r *Traffic) SetAfter(after func(*http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = after
}

// SetAdmit sets a function that changes the objects in requests with POST and PUT, as an admission webhook of the
// cluster would. It does not see patches.
func (r *Traffic) SetAdmit(admit func(map[string]any)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.admit = admit
}

// SetUser sets a user as whom requests are made, instead of the user of their own credentials.
func (r *Traffic) SetUser(user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.user = user
}

// Wrap is for rest.Config.Wrap.
func (r *Traffic) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(req *http.Request) (*http.Response, error) {
		isWatch := strings.Contains(req.URL.RawQuery, "watch=true")
		r.mu.Lock()
		if !isWatch {
			r.seen = append(r.seen, req.Method+" "+req.URL.Path)
			r.unanswered.Add(1)
			defer r.unanswered.Add(-1)
		}
		answer, after, admit, user := r.answer, r.after, r.admit, r.user
		r.mu.Unlock()
		if user != "" {
			req = req.Clone(req.Context())
			req.Header.Set("Impersonate-User", user)
		}
		if admit != nil && req.Body != nil && (req.Method == http.MethodPost || req.Method == http.MethodPut) {
			req = admitted(req, admit)
		}
		if answer != nil {
			if resp := answer(req); resp != nil {
				return resp, nil
			}
		}
		resp, err := next.RoundTrip(req)
		if after != nil {
			after(req)
		}
		if err == nil && isWatch {
			resp.Body = &watched{resp.Body, r, req.URL.Path}
		}
		return resp, err
	})
}

func admitted(req *http.Request, admit func(map[string]any)) *http.Request {
	content := map[string]any{}
	if err := json.NewDecoder(req.Body).Decode(&content); err != nil {
		panic(err)
	}
	admit(content)
	body, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return req
}

// watched is the body of the answer to a watch.
type watched struct {
	io.ReadCloser
	traffic *Traffic
	path    string
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.traffic.mu.Lock()
	held, release := w.traffic.held, w.traffic.release
	w.traffic.mu.Unlock()
	if held == w.path && release != nil {
		<-release
	}
	return n, err
}

// Hold holds back the events of the watches of a path until the function that it returns is called, or the test ends.
func (r *Traffic) Hold(tb testing.TB, path string) (release func()) {
	tb.Helper()
	ch := make(chan struct{})
	r.mu.Lock()
	r.held, r.release = path, ch
	r.mu.Unlock()
	release = sync.OnceFunc(func() {
		r.mu.Lock()
		r.held, r.release = "", nil
		r.mu.Unlock()
		close(ch)
	})
	tb.Cleanup(release)
	return release
}

// Progress returns the number of requests that were seen, and how many of them have no answer yet.
func (r *Traffic) Progress() (seen, unanswered int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen), int(r.unanswered.Load())
}

// Since returns the requests after the first n, as "METHOD /path", with one of the methods, or with any.
func (r *Traffic) Since(n int, methods ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.seen[n:] {
		if method, _, _ := strings.Cut(s, " "); len(methods) == 0 || slices.Contains(methods, method) {
			out = append(out, s)
		}
	}
	return out
}

// Count returns the number of requests that were seen.
func (r *Traffic) Count() int { return len(r.Since(0)) }

// Writes returns the number of requests that were seen and are not reads.
func (r *Traffic) Writes() int { return len(r.Since(0, Writes()...)) }

// Last returns the last n requests.
func (r *Traffic) Last(n int) []string { return r.Since(max(0, r.Count()-n)) }

// Writes are the methods that change something.
func Writes() []string {
	return []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

// JSONAnswer is an answer of an API server.
func JSONAnswer(req *http.Request, code int, body string) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}
}
