// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

const namespace = "default"

// The API server of this package: a hub with the CRDs of all providers.
var (
	config     *rest.Config
	kubeconfig []byte
	hub        client.Client
	versions   = map[schema.GroupKind]string{}
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctrl.SetLogger(logr.Discard())
	ctx := context.Background()
	var kinds []schema.GroupKind
	for _, some := range [][]schema.GroupKind{
		providercrds.ManagedResources(), providercrds.ModernManagedResources(),
		providercrds.ClusterAPI(), providercrds.Reflected(), providercrds.Identities(), providerConfigs(),
	} {
		kinds = append(kinds, some...)
	}
	crds, err := providercrds.Load(ctx, kinds...)
	if err != nil {
		return fail(err)
	}
	env, err := testenv.New(testenv.CRDs())
	if err != nil {
		return fail(err)
	}
	env.CRDInstallOptions.CRDs = crds
	defer func() { _ = env.Stop() }()
	if config, err = testenv.Start(env); err != nil {
		return fail(err)
	}
	config.QPS, kubeconfig = -1, env.KubeConfig
	if hub, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return fail(err)
	}
	for _, crd := range crds {
		versions[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = crd.Spec.Versions[0].Name
	}
	return m.Run()
}

// scope is a set of objects with their own admission policies: the label that puts an object under the policies has a
// different name in each scope. So what one test removes still exists for the others, and nothing has to be waited for
// between the tests.
type scope struct{ name string }

// label returns the scope's label in place of a label of an import.
func (s scope) label(key string) string {
	return strings.Replace(key, "fleet.masthead.dev/", s.name+".fleet.masthead.dev/", 1)
}

// object returns the smallest object of a kind that an import creates, in the scope.
func (s scope) object(t *testing.T, kind schema.GroupKind, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := imported.Object(kind, versions[kind], namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for key, value := range object.GetLabels() {
		labels[s.label(key)] = value
	}
	object.SetLabels(labels)
	return object
}

// install installs the policies for the scope, without the rules whose messages contain one of the given texts, and
// waits until they are enforced.
func (s scope) install(t *testing.T, without ...string) {
	t.Helper()
	policies, err := takeover.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies {
		policy := takeover.Policy{Policy: rename(t, s, policy.Policy), Binding: rename(t, s, policy.Binding)}
		policy.Policy.Spec.Validations = slices.DeleteFunc(policy.Policy.Spec.Validations, func(v admissionregistrationv1.Validation) bool {
			return slices.ContainsFunc(without, func(text string) bool { return strings.Contains(v.Message, text) })
		})
		for _, object := range []client.Object{policy.Policy, policy.Binding} {
			if err := hub.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), object) })
		}
	}
	s.waitEnforced(t, without...)
}

// waitEnforced waits until each policy refuses an object that breaks two of its rules, so that one of them may be
// removed. The policy about identities has only one rule for objects that are created: without that rule, nothing shows
// that the policy is enforced.
func (s scope) waitEnforced(t *testing.T, without ...string) {
	t.Helper()
	list := func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(o.Object, []string{"aws:///x/i-0"}, "spec", "providerIDList")
		o.SetAnnotations(nil)
	}
	canaries := map[schema.GroupKind]func(*unstructured.Unstructured){
		{Group: "ec2.aws.upbound.io", Kind: "VPC"}: func(o *unstructured.Unstructured) {
			o.SetAnnotations(nil)
			_ = unstructured.SetNestedField(o.Object, "Delete", "spec", "deletionPolicy")
		},
		{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSManagedMachinePool"}: list,
		{Group: "cluster.x-k8s.io", Kind: "MachinePool"}:                          list,
	}
	if !slices.ContainsFunc(without, func(text string) bool { return strings.Contains(text, "allowedNamespaces") }) {
		canaries[schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSClusterRoleIdentity"}] = func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedMap(o.Object, map[string]any{}, "spec", "allowedNamespaces")
		}
	}
	for kind, forbid := range canaries {
		var last error
		if err := testenv.Poll(t.Context(), testenv.Patience, func(ctx context.Context) (bool, error) {
			canary := s.object(t, kind, "canary")
			forbid(canary)
			last = hub.Create(ctx, canary, client.DryRunAll)
			return apierrors.IsForbidden(last), nil
		}); err != nil {
			t.Fatalf("the policies for %s are not enforced: %v: %v", kind, err, last)
		}
	}
}

// rename returns a copy of a policy or a binding that belongs to the scope.
func rename[T any](t *testing.T, s scope, object *T) *T {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(content), "fleet.masthead.dev/import-", s.name+".fleet.masthead.dev/import-")
	text = strings.ReplaceAll(text, ".imports.masthead.dev", "."+s.name+".imports.masthead.dev")
	renamed := new(T)
	if err := json.Unmarshal([]byte(text), renamed); err != nil {
		t.Fatal(err)
	}
	return renamed
}
