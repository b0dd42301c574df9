// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNotEnforced is wrapped by the error of Verify when the hub allows what the policies forbid, or has other policies
// than this program needs. Any other error means that the hub could not be queried.
var ErrNotEnforced = errors.New("the admission policies of the importer are not enforced")

// Hub is the hub client that Verify needs. It must not read from a cache, which could still have a policy that was just
// deleted. It needs the rights to get ValidatingAdmissionPolicies and their bindings, and to create the kinds that an
// import creates.
type Hub interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
	RESTMapper() meta.RESTMapper
}

// Verify returns nil if the hub currently enforces the importer's policies, see the guarantees of the package. The
// objects that the hub has to refuse are sent as dry runs for the namespace. A family of which the hub serves no kind
// needs no enforced policy: its objects cannot exist.
func Verify(ctx context.Context, hub Hub, namespace string) error {
	for _, family := range families() {
		want, err := load(family.file)
		if err != nil {
			return err
		}
		if err := checkInstalled(ctx, hub, want); err != nil {
			return err
		}
		if err := checkRefused(ctx, hub, want.Policy.Name, family.canaries(), namespace); err != nil {
			return err
		}
	}
	return nil
}

// checkInstalled compares a policy and its binding with those in the hub. A policy must be equal in every field:
// additions such as a match condition, a rule that excludes resources or a selector term weaken the enforcement. Ours
// leave no field to the API server's defaults.
func checkInstalled(ctx context.Context, hub Hub, want Policy) error {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := get(ctx, hub, "ValidatingAdmissionPolicy", want.Policy.Name, policy); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(want.Policy.Spec, policy.Spec) {
		return fmt.Errorf("%w: the ValidatingAdmissionPolicy %q is not the one of this version", ErrNotEnforced, want.Policy.Name)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err := get(ctx, hub, "ValidatingAdmissionPolicyBinding", want.Binding.Name, binding); err != nil {
		return err
	}
	// Additions to a binding, such as a namespace selector, weaken the enforcement. Further actions do not.
	if binding.Spec.PolicyName != want.Binding.Spec.PolicyName || binding.Spec.MatchResources != nil || !equality.Semantic.DeepEqual(binding.Spec.ParamRef, want.Binding.Spec.ParamRef) ||
		!slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny) {
		return fmt.Errorf("%w: the ValidatingAdmissionPolicyBinding %q is not the one of this version", ErrNotEnforced, want.Binding.Name)
	}
	return nil
}

func get(ctx context.Context, hub Hub, kind, name string, into any) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
	err := hub.Get(ctx, client.ObjectKey{Name: name}, live)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: there is no %s %q", ErrNotEnforced, kind, name)
	}
	if err != nil {
		return fmt.Errorf("cannot get %s %q: %w", kind, name, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, into); err != nil {
		return fmt.Errorf("cannot decode %s %q: %w", kind, name, err)
	}
	return nil
}

// checkRefused sends the first canary whose kind the hub serves and that Masthead may create: what it may not create
// needs no policy, and a policy is the same for all kinds of its family.
func checkRefused(ctx context.Context, hub Hub, policy string, canaries []canary, namespace string) error {
	var notReached error
	for _, canary := range canaries {
		mappings, err := hub.RESTMapper().RESTMappings(canary.kind)
		if err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("cannot find out whether the hub serves %s: %w", canary.kind, err)
		}
		for _, mapping := range mappings {
			objectNamespace := ""
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				objectNamespace = namespace
			}
			answer := hub.Create(ctx, canary.object(mapping.GroupVersionKind.Version, objectNamespace), client.DryRunAll)
			err = judge(policy, canary, answer)
			if !isAdmissionReached(answer) {
				notReached = err
				continue
			}
			return err
		}
	}
	return notReached
}

// isAdmissionReached reports whether neither the authorizer refused a canary, nor the hub has ceased to serve the
// version in which the mapper keeps its kind.
func isAdmissionReached(answer error) bool {
	unauthorized := apierrors.IsForbidden(answer) && !strings.Contains(answer.Error(), "denied")
	unserved := apierrors.IsNotFound(answer) && apierrors.IsUnexpectedServerError(answer)
	return !unauthorized && !unserved
}

// judge determines from the hub's answer whether the policy refused the canary.
func judge(policy string, canary canary, answer error) error {
	switch {
	case answer == nil, apierrors.IsAlreadyExists(answer):
		// An object of this name exists only if a client created it; a create that reaches it has passed admission.
		return fmt.Errorf("%w: the hub accepts an object of kind %s that the ValidatingAdmissionPolicy %q forbids", ErrNotEnforced, canary.kind, policy)
	case apierrors.IsForbidden(answer) && strings.Contains(answer.Error(), policyRefusal(policy)) && strings.Contains(answer.Error(), canary.message):
		return nil
	case apierrors.IsForbidden(answer) && strings.Contains(answer.Error(), policyRefusal(policy)):
		return fmt.Errorf("%w: the ValidatingAdmissionPolicy %q refuses an object of kind %s for another reason: %w", ErrNotEnforced, policy, canary.kind, answer)
	default:
		return fmt.Errorf("cannot find out whether the ValidatingAdmissionPolicy %q is enforced for %s: %w", policy, canary.kind, answer)
	}
}

// policyRefusal is the beginning of an API server's message that a policy refused a request.
func policyRefusal(policy string) string {
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request", policy, policy)
}
