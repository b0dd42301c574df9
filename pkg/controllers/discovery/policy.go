// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/install"
)

// policyName is the name of the ValidatingAdmissionPolicy and of its binding in workload clusters.
const policyName = install.PolicyName

// maxUserName bounds the username that a workload cluster can have written into the policy. A certificate's common name
// has 64 characters, a ServiceAccount's name at most 340.
const maxUserName = 512

// controlPlaneUsers returns the control plane components that must be able to write any object: the API server itself,
// and the controllers for garbage collection, namespace deletion and storage version migration.
func controlPlaneUsers() []string {
	return []string{
		"system:apiserver",
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:serviceaccount:kube-system:namespace-controller",
		"system:serviceaccount:kube-system:storage-version-migrator-controller",
	}
}

// checkUser returns why a name cannot be Masthead's username in a workload cluster. The anonymous user's name would let
// everybody in.
func checkUser(name string) error {
	switch {
	case name == "":
		return errors.New("the cluster returned no name")
	case name == "system:anonymous":
		return errors.New("the cluster identified Masthead as an anonymous user")
	case len(name) > maxUserName:
		return errors.New("the name is too long")
	case strings.ContainsFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsGraphic(r) }):
		return errors.New("the name has characters that cannot be printed")
	}
	return nil
}

// policyFor returns the policy that prevents all users but one from changing what Masthead put into a workload cluster:
// copies of the hub's objects, their definitions, and those of the claim kinds.
//
// Objects with the label cannot be changed or deleted, and none can be created with it. Adding the label to an existing
// object is allowed: that is how a definition is handed over to Masthead. Status subresources are not matched: API
// servers write those of definitions, and copies have none. Kubernetes exempts policies and bindings from policies, so
// this one can always be deleted by an administrator.
func policyFor(user string) *mirror {
	label := fleetv1alpha1.ManagedByLabel
	quoted := []string{}
	for _, u := range append([]string{user}, controlPlaneUsers()...) {
		quoted = append(quoted, strconv.QuoteToASCII(u))
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"failurePolicy": "Fail",
			"matchConstraints": map[string]any{
				"matchPolicy":       "Equivalent",
				"namespaceSelector": map[string]any{},
				"objectSelector":    map[string]any{"matchLabels": map[string]any{label: install.LabelValue}},
				"resourceRules": []any{
					resourceRule("apiextensions.k8s.io", "customresourcedefinitions"),
					resourceRule(crossplaneGroup, resourceXRD, resourceComposition, resourceDefinition, resourcePublication),
				},
			},
			"validations": []any{map[string]any{
				"expression": "request.userInfo.username in [" + strings.Join(quoted, ", ") + "] || " +
					"(request.operation == 'UPDATE' && !(has(oldObject.metadata.labels) && '" + label + "' in oldObject.metadata.labels && " +
					"oldObject.metadata.labels['" + label + "'] == '" + install.LabelValue + "'))",
				"message": "Masthead keeps this as it is in the hub: change it there. It can be removed here when the cluster is not enrolled any more and " +
					"the ValidatingAdmissionPolicyBinding " + policyName + " is deleted.",
				"reason": "Forbidden",
			}},
		},
	}}
	object.SetGroupVersionKind(policyKind.GroupVersionKind)
	object.SetName(policyName)
	return newMirror(object)
}

func resourceRule(group string, resources ...string) map[string]any {
	list := make([]any, 0, len(resources))
	for _, r := range resources {
		list = append(list, r)
	}
	return map[string]any{
		"apiGroups":   []any{group},
		"apiVersions": []any{"*"},
		"operations":  []any{"CREATE", "UPDATE", "DELETE"},
		"resources":   list,
		"scope":       "*",
	}
}

// policyBinding returns the binding of the policy.
func policyBinding() *mirror {
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"policyName":        policyName,
			"validationActions": []any{"Deny"},
		},
	}}
	object.SetGroupVersionKind(bindingKind.GroupVersionKind)
	object.SetName(policyName)
	return newMirror(object)
}
