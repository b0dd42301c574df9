// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

func TestParseClusterName(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   mcr.ClusterName
		want   Key
		wantOK bool
	}{
		"Complete": {
			reason: "A source, a namespace and a name.",
			name:   "capi/team-a/w1",
			want:   Key{Source: "capi", Namespace: "team-a", Name: "w1"},
			wantOK: true,
		},
		"Hub":           {reason: "The hub is not enrolled.", name: ""},
		"TwoParts":      {reason: "Names of other providers are not ours.", name: "team-a/w1"},
		"FourParts":     {reason: "No part of a name holds a slash.", name: "capi/team-a/w1/x"},
		"EmptyPart":     {reason: "A part that is missing is not the empty string.", name: "capi//w1"},
		"TrailingSlash": {reason: "A cluster has a name.", name: "capi/team-a/"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := ParseClusterName(tc.name)
			if ok != tc.wantOK || got != tc.want {
				t.Errorf("%s\nParseClusterName(%q): want %v, %v, got %v, %v", tc.reason, tc.name, tc.want, tc.wantOK, got, ok)
			}
			if ok && got.ClusterName() != tc.name {
				t.Errorf("the name of %v is %q, not %q", got, got.ClusterName(), tc.name)
			}
		})
	}
}

func TestPublishedOfLongNames(t *testing.T) {
	short := Key{Source: "capi", Namespace: "team-a", Name: "w1"}
	if got := short.Published(); got != (types.NamespacedName{Namespace: "team-a", Name: "capi-w1"}) {
		t.Errorf("want team-a/capi-w1, got %v", got)
	}
	long := strings.Repeat("a", validation.DNS1123SubdomainMaxLength-1)
	a := Key{Source: "kubeconfig", Namespace: "n", Name: long + "a"}.Published()
	b := Key{Source: "kubeconfig", Namespace: "n", Name: long + "b"}.Published()
	if a == b {
		t.Errorf("Two long names must not share an object: both are %q", a.Name)
	}
	for _, key := range []types.NamespacedName{a, b} {
		if problems := validation.IsDNS1123Subdomain(key.Name); len(problems) > 0 {
			t.Errorf("It must be the name of an object: %q: %v", key.Name, problems)
		}
	}
	dotted := Key{Source: "kubeconfig", Namespace: "n", Name: strings.Repeat("a.", 126) + "a"}.Published()
	if problems := validation.IsDNS1123Subdomain(dotted.Name); len(problems) > 0 {
		t.Errorf("A name that is cut after a dot must still be the name of an object: %q: %v", dotted.Name, problems)
	}
}
