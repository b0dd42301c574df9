// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestRecordOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, value string
		want          Record
		recorded      bool
	}{
		"None":      {reason: "A claim that was never pushed records nothing."},
		"Own":       {reason: "What was recorded for this claim counts.", value: "bar/hub-uid/claim-uid", want: Record{"bar", "hub-uid"}, recorded: true},
		"Copied":    {reason: "What was recorded for another claim does not.", value: "bar/hub-uid/other-uid"},
		"Short":     {reason: "A record that does not say for which claim it is counts for none.", value: "bar/hub-uid"},
		"Long":      {reason: "A namespace has no slash.", value: "bar/x/hub-uid/claim-uid"},
		"NoUID":     {reason: "An object without a UID is none.", value: "bar//claim-uid"},
		"Garbage":   {reason: "Text that means nothing records nothing.", value: "///"},
		"Namespace": {reason: "So does an object without a namespace.", value: "/hub-uid/claim-uid"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &metav1.ObjectMeta{UID: "claim-uid"}
			if tc.value != "" {
				claim.Annotations = map[string]string{fleetv1alpha1.HubObjectAnnotation: tc.value}
			}
			if got, recorded := RecordOf(claim); got != tc.want || recorded != tc.recorded {
				t.Errorf("%s want %v (%t), got %v (%t)", tc.reason, tc.want, tc.recorded, got, recorded)
			}
		})
	}
}
