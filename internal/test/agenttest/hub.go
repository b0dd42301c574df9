// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// AsUser returns a kubeconfig with one user.
func AsUser(user map[string]any, cluster map[string]any) []byte {
	kubeconfig, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": cluster}},
		"users":    []any{map[string]any{"name": "c", "user": user}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "c"}}},
	})
	if err != nil {
		panic(err)
	}
	return kubeconfig
}

// AsToken returns a kubeconfig with a token.
func AsToken(token string) []byte {
	return AsUser(map[string]any{"token": token}, map[string]any{"server": "https://hub.example.org"})
}

// Scheme has the types that the tests use.
func Scheme() *runtime.Scheme {
	return controllertest.NewScheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, fleetv1alpha1.AddToScheme)
}

// OurHub is the identity of the hub of a fixture, and OurFinalizer the finalizer that it writes.
const (
	OurHub       hubidentity.Identity = "hub-a" //nolint:staticcheck // The finalizer is a plain string.
	OurFinalizer                      = "agent.masthead.dev/requirement-hub-a"
)
