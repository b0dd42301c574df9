// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// attempt is a request that one rule of the policies refuses.
type attempt struct {
	// rule is a text in the message of the rule.
	rule string
	// what describes the attempt, as the table shows it.
	what string
	kind schema.GroupKind
	// verb is create, update or delete.
	verb   string
	change func(*unstructured.Unstructured)
	// options of the deletion; allowed: the object has the annotation that allows its deletion.
	options []client.DeleteOption
	allowed bool
	// tenant: the attempt is made without the right to create clusterimports/objects.
	tenant bool
}

// attempts returns one for each rule of the policies about objects with the label of an import.
func attempts() []attempt {
	vpc := schema.GroupKind{Group: "ec2.aws.upbound.io", Kind: "VPC"}
	pool := schema.GroupKind{Group: infrastructureGroup, Kind: "AWSManagedMachinePool"}
	controlPlane := schema.GroupKind{Group: controlPlaneGroup, Kind: "AWSManagedControlPlane"}
	cluster := schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}
	machinePool := schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "MachinePool"}
	identity := schema.GroupKind{Group: infrastructureGroup, Kind: "AWSClusterRoleIdentity"}
	spec := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, value, append([]string{"spec"}, path...)...)
		}
	}
	drop := func(annotation string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { dropAnnotation(o, annotation) }
	}
	nodes := spec([]any{"aws:///eu-central-1a/i-0"}, "providerIDList")
	foreground := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground)}
	return []attempt{
		{rule: rulePolicies, what: "a managed resource that manages", kind: vpc, verb: "update", change: spec([]any{"*"}, "managementPolicies")},
		{rule: ruleDeletionPolicy, what: "a managed resource that deletes with itself", kind: vpc, verb: "update", change: spec("Delete", "deletionPolicy")},
		{rule: ruleInitProvider, what: "values for the day on which it manages", kind: vpc, verb: "update", change: spec("10.0.0.0/8", "initProvider", "cidrBlock")},
		{rule: ruleForProvider, what: "values for the day on which it manages", kind: vpc, verb: "update", change: spec("10.0.0.0/8", "forProvider", "cidrBlock")},
		{
			rule: "must have the annotation crossplane.io/external-name", what: "a managed resource that names nothing", kind: vpc, verb: "create",
			change: drop(imported.ExternalNameAnnotation),
		},
		{rule: ruleExternalName, what: "a managed resource for something else", kind: vpc, verb: "update", change: func(o *unstructured.Unstructured) {
			setAnnotation(o, imported.ExternalNameAnnotation, "another")
		}},
		{rule: ruleProviderConfig, what: "another identity", kind: vpc, verb: "update", change: spec("another", "providerConfigRef", "name")},
		{rule: ruleLabels, what: "an object that no policy is about any more", kind: vpc, verb: "update", change: func(o *unstructured.Unstructured) {
			o.SetLabels(nil)
		}},
		{rule: "Only the importer creates objects", what: "a copy, which the importer would take for its own", kind: cluster, verb: "create", tenant: true},
		{rule: "annotation cluster.x-k8s.io/managed-by", what: "infrastructure that CAPA reconciles", kind: pool, verb: "update", change: drop(imported.ManagedByAnnotation)},
		{rule: "An imported object must have the annotation cluster.x-k8s.io/paused", what: "infrastructure that its provider reconciles", kind: pool, verb: "update", change: drop(imported.PausedAnnotation)},
		{rule: "must not have a finalizer", what: "the finalizer of a provider", kind: pool, verb: "update", change: func(o *unstructured.Unstructured) {
			o.SetFinalizers([]string{"example.org/provider"})
		}},
		{rule: "An imported object must not have a providerIDList", what: "a list of Nodes, which core annotates and deletes", kind: pool, verb: "update", change: nodes},
		{rule: "must name an identity", what: "the identity of the provider's controller", kind: controlPlane, verb: "create", change: spec(
			map[string]any{"kind": "AWSClusterControllerIdentity", "name": "default"}, "identityRef")},
		{rule: "identity of an imported object cannot be changed", what: "an identity that the provider accepts", kind: controlPlane, verb: "update", change: spec(
			"usable", "identityRef", "name")},
		{rule: "propagation policy Background", what: "foreground deletion of the Cluster, which goes on to its infrastructure", kind: cluster, verb: "delete", options: foreground, allowed: true},
		{rule: "deleted by its import", what: "deletion of the Cluster, which core carries on", kind: cluster, verb: "delete"},
		{rule: "An imported MachinePool must have the annotation", what: "a MachinePool that core reconciles", kind: machinePool, verb: "update", change: drop(imported.PausedAnnotation)},
		{rule: "An imported MachinePool must not have a providerIDList", what: "a list of Nodes, which core annotates and deletes", kind: machinePool, verb: "update", change: nodes},
		{rule: "must not have a topology", what: "a Cluster that core builds", kind: cluster, verb: "update", change: spec(
			map[string]any{"classRef": map[string]any{"name": "x"}, "version": "v1.31.0"}, "topology")},
		{rule: "must not have allowedNamespaces", what: "an identity that a namespace may use", kind: identity, verb: "update", change: spec(map[string]any{}, "allowedNamespaces")},
	}
}

// TestEachRuleIsNeeded removes one rule of the policies at a time, and expects that what only that rule refuses passes.
func TestEachRuleIsNeeded(t *testing.T) {
	tenant := newTenant(t)
	whole := scope{name: "whole"}
	whole.install(t)
	found := &table{name: "rules", header: []string{"Rule removed", "Passes then"}}
	seen := map[string]bool{}
	for _, a := range attempts() {
		rule := ruleWith(t, a.rule)
		seen[rule] = true
		t.Run(a.rule, func(t *testing.T) {
			if err := a.try(t, whole, tenant); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a.rule) {
				t.Errorf("with the rule: want %q, got %v", rule, err)
			}
			without := scope{name: "without" + string(rune('a'+len(found.rows)))}
			without.install(t, a.rule)
			if err := a.try(t, without, tenant); err != nil {
				t.Errorf("without the rule another one refuses %s, or the attempt is wrong: %v", a.what, err)
			}
			found.add(rule, a.what)
		})
	}
	for _, rule := range rules(t) {
		if !seen[rule] {
			t.Errorf("nothing shows what the rule is for: %s", rule)
		}
	}
	if !t.Failed() {
		found.check(t)
	}
}

// rules returns the messages of the rules about objects with the label of an import.
func rules(t *testing.T) []string {
	t.Helper()
	policies, err := takeover.Policies()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range policies {
		for _, v := range p.Policy.Spec.Validations {
			if p.Policy.Spec.ParamKind == nil {
				all = append(all, v.Message)
			}
		}
	}
	return all
}

// ruleWith returns the message of the one rule, which several policies can have, that contains a text.
func ruleWith(t *testing.T, text string) string {
	t.Helper()
	found := ""
	for _, message := range rules(t) {
		if !strings.Contains(message, text) {
			continue
		}
		if found != "" && found != message {
			t.Fatalf("%q is in two rules: %q, %q", text, found, message)
		}
		found = message
	}
	if found == "" {
		t.Fatalf("%q is in no rule", text)
	}
	return found
}

// newTenant returns a client of a user with every right in the hub except the right to create objects of imports.
func newTenant(t *testing.T) client.Client {
	t.Helper()
	name := metav1.ObjectMeta{Name: "takeover-tenant"}
	role := &rbacv1.ClusterRole{ObjectMeta: name}
	for kind := range versions {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{kind.Group}, Resources: []string{"*"}, Verbs: []string{"*"}})
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name.Name}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), o) })
	}
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: name.Name}
	c, err := client.New(as, client.Options{Scheme: clientgoscheme.Scheme, Mapper: hub.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	// The authorizer knows the binding only a moment later.
	granted := &unstructured.UnstructuredList{}
	granted.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"})
	if err := testenv.Poll(t.Context(), testenv.Patience, func(ctx context.Context) (bool, error) {
		return c.List(ctx, granted) == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

// try makes the attempt in a scope, as a dry run, and returns the API server's answer.
func (a attempt) try(t *testing.T, s scope, tenant client.Client) error {
	t.Helper()
	object := s.object(t, a.kind, "rule-"+s.name)
	if a.verb == "create" {
		if a.change != nil {
			a.change(object)
		}
		c := hub
		if a.tenant {
			c = tenant
		}
		return c.Create(t.Context(), object, client.DryRunAll)
	}
	if a.allowed {
		setAnnotation(object, takeover.AllowUnimportAnnotation, imported.UID)
	}
	if err := hub.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	defer removeAllowed(t, object)
	if a.verb == "delete" {
		return hub.Delete(t.Context(), object, append([]client.DeleteOption{client.DryRunAll}, a.options...)...)
	}
	changed := object.DeepCopy()
	a.change(changed)
	return hub.Update(t.Context(), changed, client.DryRunAll)
}

// removeAllowed removes an object in the way that the policies allow.
func removeAllowed(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := hub.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	setAnnotation(object, takeover.AllowUnimportAnnotation, imported.UID)
	if err := hub.Update(ctx, object); err != nil {
		t.Fatal(err)
	}
	if err := hub.Delete(ctx, object); err != nil {
		t.Fatal(err)
	}
}
