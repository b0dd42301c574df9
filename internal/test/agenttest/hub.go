// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"encoding/json"

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

// OurHub is the identity of the hub of a fixture, and OurFinalizer the finalizer that it writes.
const (
	OurHub       hubidentity.Identity = "hub-a" //nolint:staticcheck // The finalizer is a plain string.
	OurFinalizer                      = "agent.masthead.dev/requirement-hub-a"
)
