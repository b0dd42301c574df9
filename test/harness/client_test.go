// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import "testing"

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
		"NoResource": {
			reason:    "Everything is not asked for.",
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
