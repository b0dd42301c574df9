// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type widget struct {
	Meta

	Status struct {
		Address string `json:"address"`
	} `json:"status"`
}

func TestFollow(t *testing.T) {
	stream := `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}}` + "\n" +
		`{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"7"},"status":{"address":"x"}}}` + "\n"
	var seen []string
	each := func(o widget) { seen = append(seen, o.Metadata.Name+o.Status.Address) }
	version, err := Follow(io.NopCloser(strings.NewReader(stream)), "1", each)
	if !errors.Is(err, io.EOF) || version != "7" {
		t.Errorf("A watch that the API server ends goes on after the last event: got version %q and %v, want 7 and EOF", version, err)
	}
	if diff := cmp.Diff([]string{"a", "ax"}, seen); diff != "" {
		t.Errorf("Every event counts.\n-want, +got:\n%s", diff)
	}
	stream = `{"type":"ERROR","object":{"message":"too old"}}`
	if _, err := Follow(io.NopCloser(strings.NewReader(stream)), "1", each); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("A watch that lost events must not go on as if nothing had been: got %v", err)
	}
}

func TestManifest(t *testing.T) {
	cases := map[string]struct {
		reason, namespace, want string
		rest                    map[string]any
	}{
		"ClusterScoped": {reason: "What is in no namespace names none.", want: `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}}`},
		"Namespaced": {
			reason: "The rest is added as it is.", namespace: "n", rest: map[string]any{"spec": map[string]any{"b": 1}},
			want: `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a","namespace":"n"},"spec":{"b":1}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Manifest("v1", "Thing", tc.namespace, "a", tc.rest)
			if got != tc.want || !json.Valid([]byte(got)) {
				t.Errorf("%s got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
