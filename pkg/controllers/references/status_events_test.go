// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// newNetwork makes a group serve Networks, and returns one that takes its region from a ConfigMap.
func newNetwork(t *testing.T, group, ns string, change func(*apiextensionsv1.CustomResourceDefinition)) *unstructured.Unstructured {
	t.Helper()
	crd, err := withReferences("Network", apiextensionsv1.NamespaceScoped)
	if err != nil {
		t.Fatal(err)
	}
	crd.Name, crd.Spec.Group = "networks."+group, group
	change(crd)
	create(t, crd)
	u := network("Network", ns, "net", "")
	u.SetAPIVersion(group + "/v1")
	return u
}

// awaitEvent waits until there is an event about an object.
func awaitEvent(t *testing.T, obj client.Object, reason string) eventsv1.Event {
	t.Helper()
	var found eventsv1.Event
	err := testenv.Poll(t.Context(), patience, func(ctx context.Context) (bool, error) {
		list := &eventsv1.EventList{}
		if err := api.List(ctx, list, client.InNamespace(obj.GetNamespace())); err != nil {
			return false, err
		}
		for i := range list.Items {
			if e := list.Items[i]; e.Regarding.UID == obj.GetUID() && e.Reason == reason {
				found = e
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("there is no event of the reason %s: %v", reason, err)
	}
	return found
}

// awaitRegion waits until the region of an object is filled.
func awaitRegion(t *testing.T, u *unstructured.Unstructured, want string) {
	t.Helper()
	err := testenv.Poll(t.Context(), patience, func(ctx context.Context) (bool, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(u), u)
		return field(u, "spec", "region") == want, err
	})
	if err != nil {
		t.Fatalf("the region is not filled: %v: %v", err, u.Object)
	}
}

// TestEventWhereThereIsNoCondition: objects of a kind whose status has no conditions get events.
func TestEventWhereThereIsNoCondition(t *testing.T) {
	ns := namespace(t)
	u := newNetwork(t, "plain.example.org", ns, func(crd *apiextensionsv1.CustomResourceDefinition) {
		delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "status")
	})
	createServed(t, u)
	if e := awaitEvent(t, u, commonv1alpha1.ReasonSourceNotFound); e.Type != "Warning" || !strings.Contains(e.Note, `configmaps "settings"`) {
		t.Errorf("the event does not say what is wrong: %+v", e)
	}
	create(t, configMap(ns, "settings", map[string]string{"region": "eu-west-1"}))
	awaitRegion(t, u, "eu-west-1")
	awaitEvent(t, u, commonv1alpha1.ReasonResolved)
	if _, there := u.Object["status"]; there {
		t.Errorf("want no status to be written, got %v", u.Object)
	}
}

// TestEventWhereTheConditionIsRefused: the owner of a cluster can have its API server refuse the condition. The field
// is filled, and an event reports what the condition would.
func TestEventWhereTheConditionIsRefused(t *testing.T) {
	const group = "refused.example.org"
	ns := namespace(t)
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-status-of-networks"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{"networks/status"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	create(t, policy, binding)
	u := newNetwork(t, group, ns, func(*apiextensionsv1.CustomResourceDefinition) {})

	probe := u.DeepCopy()
	probe.SetName("probe")
	unstructured.RemoveNestedField(probe.Object, "spec")
	createServed(t, probe)
	err := testenv.Poll(t.Context(), patience, func(ctx context.Context) (bool, error) {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q}]}}`, time.Now()))
		err := api.Status().Patch(ctx, probe, patch)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	if err != nil {
		t.Fatalf("the policy is not in force: %v", err)
	}

	createServed(t, u)
	awaitEvent(t, u, commonv1alpha1.ReasonSourceNotFound)
	create(t, configMap(ns, "settings", map[string]string{"region": "eu-west-1"}))
	awaitRegion(t, u, "eu-west-1")
	awaitEvent(t, u, commonv1alpha1.ReasonResolved)
	if c := condition.Entry(u, commonv1alpha1.ConditionReferencesResolved); c != nil {
		t.Errorf("want no condition, got %v", c)
	}
}
