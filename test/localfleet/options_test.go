// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsWithDefaults(t *testing.T) {
	cases := map[string]struct {
		reason  string
		options Options
		valid   bool
	}{
		"Valid":     {reason: "Names that Kubernetes accepts are accepted.", options: Options{Dir: "d", Workloads: []string{"w1", "edge-2"}}, valid: true},
		"Empty":     {reason: "A fleet may be a hub alone.", options: Options{Dir: "d"}, valid: true},
		"NoDir":     {reason: "A fleet needs a folder.", options: Options{}},
		"Hub":       {reason: "The hub's name is taken.", options: Options{Dir: "d", Workloads: []string{HubName}}},
		"Twice":     {reason: "Two clusters cannot share a name.", options: Options{Dir: "d", Workloads: []string{"w1", "w1"}}},
		"Path":      {reason: "A name becomes a path and must not lead elsewhere.", options: Options{Dir: "d", Workloads: []string{"../w1"}}},
		"UpperCase": {reason: "A name becomes the name of an object.", options: Options{Dir: "d", Workloads: []string{"W1"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.options.withDefaults()
			if (err == nil) != tc.valid {
				t.Fatalf("%s\nwithDefaults(): want valid %t, got error %v", tc.reason, tc.valid, err)
			}
			if err != nil {
				return
			}
			if !filepath.IsAbs(got.Dir) || got.Namespace != "default" || got.Log == nil {
				t.Errorf("%s\nwithDefaults(): incomplete: %+v", tc.reason, got)
			}
		})
	}
}

func TestWorkloadNames(t *testing.T) {
	if diff := cmp.Diff([]string{"w1", "w2", "w3"}, WorkloadNames(3)); diff != "" {
		t.Errorf("WorkloadNames(): -want, +got:\n%s", diff)
	}
}
