// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connectiontest holds helpers shared by the tests of connection and its subpackages: kubeconfigs, and waiting.
package connectiontest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Patience is how long a test waits for an expected condition; no test asserts speed.
	Patience = 3 * time.Minute
	// Tick is the polling interval.
	Tick = 20 * time.Millisecond
)

// Kubeconfig returns a kubeconfig for a server, its authority if there is one, and a token.
func Kubeconfig(t testing.TB, server string, ca []byte, token string) []byte { //nolint:thelper // Benchmarks use it, too.
	t.Helper()
	c := map[string]any{"server": server}
	if ca != nil {
		c["certificate-authority-data"] = ca
	}
	b, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []any{map[string]any{"name": "x", "cluster": c}},
		"users":    []any{map[string]any{"name": "x", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "x", "user": "x"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Authority returns the certificate of a server, as its own authority.
func Authority(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// BlackHole accepts TCP connections and never responds.
func BlackHole(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "https://" + l.Addr().String()
}

// Endless sends a response without end.
func Endless(w http.ResponseWriter, r *http.Request) {
	chunk := []byte(strings.Repeat("x", 1<<16))
	for r.Context().Err() == nil {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// Eventually waits until a condition is true. On time-out, it reports the states.
func Eventually(t *testing.T, what string, ok func() bool, state ...func() any) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), Tick, Patience, true, func(context.Context) (bool, error) { return ok(), nil })
	if err != nil {
		var got []any
		for _, s := range state {
			got = append(got, s())
		}
		t.Fatalf("waited in vain until %s; got %v", what, got)
	}
}
