// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestValidationOfApplicationsInAClass(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		applications map[string]any
		want         string // A part of the API server's message; empty if the object is valid.
	}{
		"observe-only": {reason: "Nothing is written to components.", applications: map[string]any{"mode": "ObserveOnly"}},
		"another-mode": {reason: "There are three.", applications: map[string]any{"mode": "Watch"}, want: "Unsupported value"},
		"visibility": {reason: "Namespaces and resources, for some namespaces.", applications: map[string]any{"visibility": []any{
			map[string]any{"from": []any{"a"}, "namespaces": []any{"b"}, "clusterScoped": []any{map[string]any{"group": "g.org", "resource": "*"}}},
		}}},
		"nothing-to-see":  {reason: "An entry that allows nothing is a mistake.", applications: map[string]any{"visibility": []any{map[string]any{"from": []any{"a"}}}}, want: "namespaces or clusterScoped is required"},
		"from-nowhere":    {reason: "An entry names the namespaces that it is for.", applications: map[string]any{"visibility": []any{map[string]any{"namespaces": []any{"a"}}}}, want: "from"},
		"not-a-namespace": {reason: "There are no wildcards.", applications: map[string]any{"visibility": []any{map[string]any{"from": []any{"*"}, "namespaces": []any{"a"}}}}, want: "a namespace is a DNS label"},
		"ownership":       {reason: "The operator consents.", applications: map[string]any{"discoveredOwnership": "Allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			class := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"agent": map[string]any{"mode": "Disabled"}, "applications": tc.applications,
			}}}
			class.SetGroupVersionKind(fleetv1alpha1.GroupVersion.WithKind("EnrollmentClass"))
			class.SetName("applications-" + name)
			err := hub.Create(t.Context(), class, client.FieldValidation(metav1.FieldValidationStrict), client.DryRunAll)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
