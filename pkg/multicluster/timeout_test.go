// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestWithTimeout(t *testing.T) {
	hang := func(r *http.Request) { <-r.Context().Done() }
	for _, tc := range []struct {
		name, reason string
		d            time.Duration
		serve        func(w http.ResponseWriter, r *http.Request)
		want         string
		timedOut     bool
	}{
		{
			name: "answer", reason: "It came in time.", d: time.Hour, want: "all of it",
			serve: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "all of it") },
		},
		{
			name: "no answer", reason: "A server that accepts and says nothing must not hold a watch for ever.", d: time.Millisecond, timedOut: true,
			serve: func(_ http.ResponseWriter, r *http.Request) { hang(r) },
		},
		{
			name: "half an answer", reason: "Nor one that stops in the middle.", d: 100 * time.Millisecond, timedOut: true,
			serve: func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "half")
				_ = http.NewResponseController(w).Flush()
				hang(r)
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(tc.serve))
			defer server.Close()
			client := &http.Client{Transport: WithTimeout(nil, tc.d)}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			got, err := fetched(client, req)
			if errors.Is(err, context.DeadlineExceeded) != tc.timedOut || !tc.timedOut && (err != nil || got != tc.want) {
				t.Errorf("%s Got %q, %v", tc.reason, got, err)
			}
		})
	}
}

func fetched(client *http.Client, req *http.Request) (string, error) {
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
