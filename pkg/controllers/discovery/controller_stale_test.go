// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/stalekind"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// TestStaleCopiesAreReported is about copies that can be neither listed nor watched any more: nothing is written on the
// basis of their last known state.
func TestStaleCopiesAreReported(t *testing.T) {
	copies := mirrorKind(kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: crossplaneGroup, Version: "v1", Kind: "Composition"},
		Resource:         resourceComposition, ClusterScoped: true,
	})
	p := &pass{w: &workload{watcher: stalekind.Watcher(t, copies, policyKind)}}
	for name, tc := range map[string]struct {
		kind    kindwatch.Kind
		reasons reasonSet
		want    string
	}{
		"Objects": {kind: copies, reasons: objectReasons, want: fleetv1alpha1.ReasonObjectRejected},
		"Policy":  {kind: policyKind, reasons: policyReasons, want: fleetv1alpha1.ReasonPolicyRejected},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.known(tc.kind, tc.reasons)
			var got *condition.Error
			if !errors.As(err, &got) || got.Reason != tc.want || !strings.Contains(got.Message, "are not known") {
				t.Errorf("want %s, got %v", tc.want, err)
			}
		})
	}
}
