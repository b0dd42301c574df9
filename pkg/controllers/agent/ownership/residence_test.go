// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSucceeds(t *testing.T) {
	now := Residence{"c1", "new"}
	for name, tc := range map[string]struct {
		reason string
		home   Residence
		was    Residence
		want   bool
	}{
		"Same":        {reason: "A namespace does not succeed itself.", home: now, was: now},
		"Recreated":   {reason: "A namespace of the name with another UID is another one.", home: now, was: Residence{"c1", "old"}, want: true},
		"Replacement": {reason: "All namespaces of a cluster that replaces another are new.", home: now, was: Residence{"c0", "old"}},
		"Legacy":      {reason: "Nothing is known of what an older Masthead pushed.", home: now},
		"NotSeen":     {reason: "A namespace that is not known is not taken for another one.", home: Residence{Cluster: "c1"}, was: Residence{"c1", "old"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.home.Succeeds(&metav1.ObjectMeta{Annotations: tc.was.Annotations()}); got != tc.want {
				t.Errorf("%s want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
