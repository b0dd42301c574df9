// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// TestAnAPIServerThatCannotStartIsHeard starts an API server with a flag that does not exist.
func TestAnAPIServerThatCannotStartIsHeard(t *testing.T) {
	env, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var heard strings.Builder
	words, is := env.ControlPlane.GetAPIServer().Err.(*lastWords)
	if !is {
		t.Fatalf("what the API server prints is not recorded: %T", env.ControlPlane.GetAPIServer().Err)
	}
	words.to = &heard
	env.ControlPlane.GetAPIServer().Configure().Append("no-such-flag", "x")
	t.Cleanup(func() { _ = env.Stop() }) // Its etcd has started.
	if _, err := Start(env); err == nil {
		t.Fatal("it started")
	}
	if want := "kube-apiserver: Error: unknown flag: --no-such-flag"; !strings.Contains(heard.String(), want) {
		t.Errorf("want %q, got %q", want, heard.String())
	}
}

// TestEnvtestsSwitchShowsAll checks that the outputs that envtest attaches are left as they are.
func TestEnvtestsSwitchShowsAll(t *testing.T) {
	listeners := func(env *envtest.Environment) []io.Writer {
		out := []io.Writer{env.ControlPlane.GetAPIServer().Err}
		if env.ControlPlane.Etcd != nil {
			out = append(out, env.ControlPlane.Etcd.Err)
		}
		return out
	}
	for attach, want := range map[string]int{"true": 0, "": 2} {
		t.Setenv(attachEnv, attach)
		env, err := New()
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, to := range listeners(env) {
			if to != nil {
				got++
			}
		}
		if got != want {
			t.Errorf("%s=%q: %d programs are listened to, want %d", attachEnv, attach, got, want)
		}
	}
}

// TestStartWaitsForTheNamespace starts an environment whose API server has its namespace "default" late.
func TestStartWaitsForTheNamespace(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api":
			_, _ = fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			_, _ = fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1"}`)
		case "/api/v1":
			_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace"}]}`)
		case "/api/v1/namespaces/default":
			w.Header().Set("Content-Type", "application/json")
			// Envtest queries for it a hundred times.
			if requests.Add(1) < 110 {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default"}}`)
		}
	}))
	t.Cleanup(server.Close)
	env := &envtest.Environment{UseExistingCluster: new(true), Config: &rest.Config{Host: server.URL}}
	if _, err := Start(env); err != nil {
		t.Error(err)
	}
	if n := requests.Load(); n < 110 {
		t.Errorf("it queried for the namespace %d times", n)
	}
}
