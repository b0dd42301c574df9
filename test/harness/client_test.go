// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/jsonpath"
)

func TestQuery(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		arguments []string
		want      query
		refused   bool
	}{
		"Object": {
			reason:    "Without a namespace it is the one of kubectl.",
			arguments: []string{"configmap", "settings"},
			want:      query{resource: "configmap", name: "settings", namespace: "default"},
		},
		"Namespace": {
			reason:    "Flags may come last, as kubectl has it.",
			arguments: []string{"secret", "creds", "--namespace", "bar"},
			want:      query{resource: "secret", name: "creds", namespace: "bar"},
		},
		"Slash": {
			reason:    "kubectl prints objects like this.",
			arguments: []string{"service/shop", "--namespace", "bar"},
			want:      query{resource: "service", name: "shop", namespace: "bar"},
		},
		"Selector": {
			reason:    "Flags may come between, too.",
			arguments: []string{"pods", "--selector=app=shop", "-n", "bar"},
			want:      query{resource: "pods", selector: "app=shop", namespace: "bar"},
		},
		"Everywhere": {
			reason:    "All namespaces are an empty one.",
			arguments: []string{"pods", "--all-namespaces"},
			want:      query{resource: "pods"},
		},
		"NoResource": {
			reason:    "A request for objects of every kind is refused.",
			arguments: []string{"--namespace", "bar"},
			refused:   true,
		},
		"TwoNames": {
			reason:    "The second name would be passed over.",
			arguments: []string{"configmap", "one", "two"},
			refused:   true,
		},
		"UnknownFlag": {
			reason:    "What is not done is not accepted.",
			arguments: []string{"configmap", "--watch"},
			refused:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseQuery(tc.arguments)
			if refused := err != nil; got != tc.want || refused != tc.refused {
				t.Errorf("%s: parseQuery(%q) = %+v, %v, want %+v, refused: %t", tc.reason, tc.arguments, got, err, tc.want, tc.refused)
			}
		})
	}
}

// TestNullIsMissing evaluates a filter on conditions that are null, which fails unless nulls are removed.
func TestNullIsMissing(t *testing.T) {
	filter := jsonpath.New("get").AllowMissingKeys(true)
	if err := filter.Parse(`{.status.conditions[?(@.type=="Established")].status}`); err != nil {
		t.Fatal(err)
	}
	established := []any{map[string]any{"type": "Established", "status": "True", "message": nil}}
	for name, tc := range map[string]struct {
		reason     string
		conditions any
		want       string
	}{
		"Null":  {reason: "A definition has them before its first condition.", conditions: nil, want: ""},
		"Set":   {reason: "What is not null stays, and what is null in a list goes.", conditions: established, want: "True"},
		"Empty": {reason: "An empty list is not null.", conditions: []any{}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			content := withoutNulls(map[string]any{"status": map[string]any{"conditions": tc.conditions}})
			if err := filter.Execute(&out, content); err != nil || out.String() != tc.want {
				t.Errorf("%s: want %q, got %q, %v", tc.reason, tc.want, out.String(), err)
			}
		})
	}
}

// TestVersionThatIsNoLongerServed makes a cluster serve another version of a resource that was read before.
func TestVersionThatIsNoLongerServed(t *testing.T) {
	var version atomic.Value
	var discoveries atomic.Int32
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served := version.Load().(string)
		at := metav1.GroupVersionForDiscovery{GroupVersion: "test.dev/" + served, Version: served}
		switch r.URL.Path {
		case "/api":
			answer(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}})
		case "/apis":
			discoveries.Add(1)
			answer(w, metav1.APIGroupList{
				TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
				Groups:   []metav1.APIGroup{{Name: "test.dev", Versions: []metav1.GroupVersionForDiscovery{at}, PreferredVersion: at}},
			})
		case "/apis/test.dev/" + served:
			answer(w, metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: at.GroupVersion,
				APIResources: []metav1.APIResource{{Name: "things", ShortNames: []string{"th"}, Kind: "Thing", Verbs: metav1.Verbs{"get", "list"}}},
			})
		case "/apis/test.dev/" + served + "/things":
			answer(w, map[string]any{"apiVersion": at.GroupVersion, "kind": "ThingList", "items": []any{
				map[string]any{"apiVersion": at.GroupVersion, "kind": "Thing", "metadata": map[string]any{"name": "one"}},
			}})
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	c := NewClient(oneServer{host: server.URL})
	for _, served := range []string{"v1", "v2"} {
		version.Store(served)
		get := func() {
			got, err := c.Get(t.Context(), "w1", "{.items[*].metadata.name} {.apiVersion}", "th")
			if want := "one test.dev/" + served; err != nil || got != want {
				t.Errorf("Get(): want %q, got %q, %v", want, got, err)
			}
		}
		get()
		before := discoveries.Load()
		get()
		if discoveries.Load() != before {
			t.Error("what was discovered is known: want no other discovery")
		}
	}
	if got, err := c.Get(t.Context(), "w1", "{.metadata.name}", "things", "two"); err != nil || got != "" {
		t.Errorf("an object that does not exist: want nothing, got %q, %v", got, err)
	}
	if _, err := c.Get(t.Context(), "w1", "{.kind}", "others"); err == nil {
		t.Error("a resource that is not served: want an error")
	}
}

// oneServer is a fleet of one API server.
type oneServer struct {
	Fleet

	host string
}

func (s oneServer) Config(string) (*rest.Config, error) { return &rest.Config{Host: s.host}, nil }
