// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
)

func TestReleasedKeepsEverythingButWhoseItWas(t *testing.T) {
	us := Source{Identifier: "w1", Namespace: "foo"}
	obj := agenttest.Parse(t, `{'metadata': {'name': 'db', 'annotations': {'a': 'b', 'agent.crossplane.io/source-uid': 'w1',
		'agent.crossplane.io/source-namespace': 'foo', 'agent.masthead.dev/applied-hash': 'x'}}, 'spec': {'a': 1}}`)
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager("w1")}, {Manager: "crossplane"}})
	out := Released(obj, us)
	if diff := cmp.Diff(map[string]string{"a": "b", fleetv1alpha1.ReleasedFromAnnotation: "w1/foo"}, out.GetAnnotations()); diff != "" {
		t.Errorf("want the annotations of others and where it comes from (-want +got):\n%s", diff)
	}
	if got := out.GetManagedFields(); len(got) != 1 || got[0].Manager != "crossplane" {
		t.Errorf("want the field managers of others only, got %v", got)
	}
	if diff := cmp.Diff(obj.Object["spec"], out.Object["spec"]); diff != "" {
		t.Errorf("want the spec as it was (-want +got):\n%s", diff)
	}
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager("w1")}})
	if got := Released(obj, us).GetManagedFields(); len(got) != 1 || got[0].Manager != fleetv1alpha1.FieldManager {
		t.Errorf("want one entry of our own, lest a manager of everything is made up, got %v", got)
	}
}
