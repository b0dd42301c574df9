// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"net/http"
	"strings"
)

// fakeAPI answers, under a prefix of the path, the requests of a connection to an API server: its health, identity,
// version, and the ServiceAccounts "masthead" and "slow". Writes of ServiceAccounts and Events are
// accepted and forgotten. It is for tests that are about the connection, not about API servers, and for fleets of
// thousands.
func fakeAPI(w http.ResponseWriter, r *http.Request, prefix, uid string) {
	answer := func(code int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
	const account = `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"namespace":"default","name":%q,"uid":%q,"resourceVersion":"1"}}`
	switch path := strings.TrimPrefix(r.URL.Path, prefix); {
	case path == "/readyz":
		answer(http.StatusOK, "ok")
	case path == "/version":
		answer(http.StatusOK, `{"gitVersion":"v1.36.3"}`)
	case path == "/api/v1/namespaces/kube-system":
		answer(http.StatusOK, fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, uid))
	case path == "/api/v1/namespaces/default":
		answer(http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default"}}`)
	case path == "/api":
		answer(http.StatusOK, `{"kind":"APIVersions","versions":["v1"]}`)
	case path == "/apis":
		answer(http.StatusOK, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case path == "/api/v1":
		answer(http.StatusOK, `{"kind":"APIResourceList","groupVersion":"v1","resources":[`+
			`{"name":"serviceaccounts","namespaced":true,"kind":"ServiceAccount","verbs":["create","get","list","watch"]},`+
			`{"name":"namespaces","kind":"Namespace","verbs":["get","list","watch"]}]}`)
	case strings.HasSuffix(path, "/serviceaccounts") && r.Method == http.MethodPost:
		answer(http.StatusCreated, fmt.Sprintf(account, "created", "3"))
	case strings.HasSuffix(path, "/events") && r.Method == http.MethodPost:
		answer(http.StatusCreated, `{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"namespace":"default","name":"created"}}`)
	case strings.HasSuffix(path, "/serviceaccounts") && r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":`+account+`}{"type":"ADDED","object":`+account+`}`, "masthead", "1", "slow", "2")
			_, _ = w.Write([]byte(`{"type":"BOOKMARK","object":{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"resourceVersion":"2",` +
				`"annotations":{"k8s.io/initial-events-end":"true"}}}}`))
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case strings.HasSuffix(path, "/serviceaccounts"):
		answer(http.StatusOK, `{"kind":"ServiceAccountList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":[`+
			fmt.Sprintf(account, "masthead", "1")+","+fmt.Sprintf(account, "slow", "2")+"]}")
	default:
		answer(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}
