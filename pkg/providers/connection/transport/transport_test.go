// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// transportTo returns a Transport to a server. The Transport is closed at the end of the test.
func transportTo(t *testing.T, s *httptest.Server) *Transport {
	t.Helper()
	o := credentials.Options{AllowLoopback: true}
	creds, err := credentials.Parse(connectiontest.Kubeconfig(t, s.URL, connectiontest.Authority(s), "token"), o)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New("fake/ns/a", creds, o, "test", func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func TestClosedTransportKeepsNoSocketAndLetsNothingThrough(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	tr := transportTo(t, s)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.Ask(req, "token")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	tr.Close()
	tr.Allow(Open) // A closed Transport stays closed.
	if resp, err := tr.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
		t.Error("a request went through a closed transport")
	}
}
