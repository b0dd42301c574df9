// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestVerbs(t *testing.T) {
	for _, tc := range []struct{ reason, prefix, method, target, want string }{
		{"An object is read.", "", http.MethodGet, "/api/v1/namespaces/a/secrets/b", "get"},
		{"A namespace is an object.", "", http.MethodGet, "/api/v1/namespaces/kube-system", "get"},
		{"Objects are listed.", "", http.MethodGet, "/apis/apps/v1/deployments?limit=500", "list"},
		{"Objects are watched.", "", http.MethodGet, "/apis/apps/v1/deployments?watch=true", "watch"},
		{"One object is watched.", "", http.MethodGet, "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Db&watch=true", "watch"},
		{"An object is created.", "", http.MethodPost, "/api/v1/namespaces/a/secrets", "create"},
		{"A status is patched.", "", http.MethodPatch, "/apis/example.org/v1/namespaces/a/dbs/b/status", "patch"},
		{"An object is replaced.", "", http.MethodPut, "/api/v1/namespaces/a/secrets/b", "update"},
		{"An object is deleted.", "", http.MethodDelete, "/api/v1/namespaces/a/secrets/b", "delete"},
		{"Objects are deleted.", "", http.MethodDelete, "/api/v1/namespaces/a/secrets", "deletecollection"},
		{"The API server is below a path.", "/k8s/clusters/x", http.MethodGet, "/k8s/clusters/x/api/v1/namespaces", "list"},
		{"The path may end in a slash.", "/k8s/", http.MethodGet, "/k8s/api/v1/namespaces", "list"},
		{"A probe is about no resource.", "", http.MethodGet, "/readyz", OtherVerb},
		{"Nor is discovery.", "", http.MethodGet, "/apis/apps/v1", OtherVerb},
		{"An unknown method makes no series.", "", "BREW", "/api/v1/namespaces/a/secrets/b", OtherVerb},
		{"Nor does a verb of a path.", "", http.MethodGet, "/api/v1/proxy/namespaces/a/services/b", OtherVerb},
	} {
		req := httptest.NewRequestWithContext(t.Context(), tc.method, "https://example.org"+tc.target, nil)
		if got := newVerbs(tc.prefix).of(req); got != tc.want {
			t.Errorf("%s\n%s %s: want %q, got %q", tc.reason, tc.method, tc.target, tc.want, got)
		}
	}
}

func TestCodeClass(t *testing.T) {
	for code, want := range map[int]string{100: "1xx", 200: "2xx", 404: "4xx", 503: "5xx", 599: "5xx", 600: NoAnswer, 99: NoAnswer, -1: NoAnswer} {
		if got := codeClass(&http.Response{StatusCode: code}); got != want {
			t.Errorf("%d: want %q, got %q", code, want, got)
		}
	}
	if got := codeClass(nil); got != NoAnswer {
		t.Errorf("no answer: got %q", got)
	}
}
