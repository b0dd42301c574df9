// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// Every test in this file removes a part of the policies and restores it, so none of them runs in parallel with another
// test.

func TestVerifyNoticesWhatIsMissing(t *testing.T) {
	policies, err := takeover.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies {
		weaker := policy.Policy.DeepCopy()
		weaker.Spec.Validations = weaker.Spec.Validations[1:]
		// The policy that is ignored when it fails must not become one that blocks a hub.
		ignoring := policy.Policy.DeepCopy()
		if *ignoring.Spec.FailurePolicy == admissionregistrationv1.Fail {
			ignoring.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
		} else {
			ignoring.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
		}
		conditional := policy.Policy.DeepCopy()
		conditional.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "never", Expression: "false"}}
		excluding := policy.Policy.DeepCopy()
		constraints := excluding.Spec.MatchConstraints
		constraints.ExcludeResourceRules = constraints.ResourceRules[:1]
		selective := policy.Policy.DeepCopy()
		selective.Spec.MatchConstraints.ObjectSelector.MatchExpressions = append(selective.Spec.MatchConstraints.ObjectSelector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: "trusted", Operator: metav1.LabelSelectorOpDoesNotExist})
		labelled := policy.Policy.DeepCopy()
		labelled.Spec.MatchConstraints.ObjectSelector.MatchLabels = map[string]string{"team": "shop"}
		elsewhereOnly := policy.Policy.DeepCopy()
		elsewhereOnly.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
		auditing := policy.Binding.DeepCopy()
		auditing.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
		elsewhere := policy.Binding.DeepCopy()
		elsewhere.Spec.MatchResources = &admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
			}}},
		}
		otherParameters := policy.Binding.DeepCopy()
		otherParameters.Spec.ParamRef = &admissionregistrationv1.ParamRef{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}, ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction),
		}
		for _, c := range []struct {
			reason string
			object client.Object
			change func(context.Context, client.Object) error
		}{
			{"the policy is gone", policy.Policy, func(ctx context.Context, o client.Object) error { return hub.Delete(ctx, o) }},
			{"the binding is gone", policy.Binding, func(ctx context.Context, o client.Object) error { return hub.Delete(ctx, o) }},
			{"the policy lacks a rule", weaker, replace},
			{"the policy has another effect when it fails", ignoring, replace},
			{"the policy has a condition", conditional, replace},
			{"the policy excludes resources", excluding, replace},
			{"the policy passes over objects with another label", selective, replace},
			{"the policy is for objects with another label", labelled, replace},
			{"the policy is for other namespaces", elsewhereOnly, replace},
			{"the binding only audits", auditing, replace},
			{"the binding is for other resources", elsewhere, replace},
			{"the binding has other parameters", otherParameters, replace},
		} {
			t.Run(policy.Policy.Name+": "+c.reason, func(t *testing.T) {
				ctx := t.Context()
				if err := c.change(ctx, c.object.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { restore(t, policy) })
				if err := takeover.Verify(ctx, hub, namespace); !errors.Is(err, takeover.ErrNotEnforced) {
					t.Errorf("Verify(): want ErrNotEnforced when %s, got: %v", c.reason, err)
				}
			})
		}
	}
}

// deaf accepts every object, like a hub in the moments before its API servers have read a new policy.
type deaf struct{ client.Client }

// Create says that the object was created.
func (deaf) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

// unreachable answers every write with an error that does not mention policies.
type unreachable struct{ client.Client }

// Create fails.
func (unreachable) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errors.New("connection refused")
}

func TestVerifyAsksTheHub(t *testing.T) {
	if err := takeover.Verify(t.Context(), deaf{hub}, namespace); !errors.Is(err, takeover.ErrNotEnforced) {
		t.Errorf("Verify(): want ErrNotEnforced when the hub accepts what is forbidden, got: %v", err)
	}
	if err := takeover.Verify(t.Context(), unreachable{hub}, namespace); err == nil || errors.Is(err, takeover.ErrNotEnforced) {
		t.Errorf("Verify(): want an error that is not ErrNotEnforced when the hub does not answer, got: %v", err)
	}
	if err := takeover.Verify(t.Context(), hub, namespace); err != nil {
		t.Errorf("Verify(): want no error when the policies are enforced, got: %v", err)
	}
}

// without refuses all kinds of other clouds, like a hub in which Masthead has the rights for one.
type without struct {
	client.Client

	other []reflection.Cloud
}

// Create creates what is not of another cloud.
func (w without) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	gk := o.GetObjectKind().GroupVersionKind().GroupKind()
	for _, cloud := range w.other {
		if reflection.Kinds(cloud)[0].Is(gk) || slices.Contains(reflection.ProviderKinds(cloud), gk) {
			return apierrors.NewForbidden(schema.GroupResource{Group: gk.Group}, o.GetName(), nil)
		}
	}
	return w.Client.Create(ctx, o, opts...)
}

// TestVerifyWithEachCloud: what one cloud has suffices to find out.
func TestVerifyWithEachCloud(t *testing.T) {
	for i, cloud := range reflection.Clouds() {
		other := slices.Delete(reflection.Clouds(), i, i+1)
		if err := takeover.Verify(t.Context(), without{hub, other}, namespace); err != nil {
			t.Errorf("%s: Verify(): %v", cloud, err)
		}
	}
	if err := takeover.Verify(t.Context(), without{hub, reflection.Clouds()}, namespace); err == nil {
		t.Error("Verify(): want an error where nothing can be found out")
	}
}

// replace gives a policy or a binding another spec.
func replace(ctx context.Context, object client.Object) error {
	live := object.DeepCopyObject().(client.Object)
	if err := hub.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	object.SetResourceVersion(live.GetResourceVersion())
	return hub.Update(ctx, object)
}

func restore(t *testing.T, policy takeover.Policy) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, object := range []client.Object{policy.Policy, policy.Binding} {
		object = object.DeepCopyObject().(client.Object)
		object.SetResourceVersion("")
		object.SetUID("")
		if err := replace(ctx, object); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		} else if err != nil {
			if err := hub.Create(ctx, object); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := waitEnforced(ctx); err != nil {
		t.Fatal(err)
	}
}
