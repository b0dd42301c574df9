// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/controllers/importer"
	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// TestCanary makes the importer itself import a cluster of each cloud, in hubs with and without the admission policies,
// with and without its canary. Then a user allows the managed resources to delete in the cloud, and deletes them.
// Without the policies, the canary prevents the creation of anything that could be used against the cluster; the
// control is the hub without both.
func TestCanary(t *testing.T) {
	found := &table{name: "canary", header: []string{"Guard removed", "Still safe?", "Managed resources", "The cloud is changed"}}
	createProviderConfigs(t, hub)
	for i, row := range []struct {
		name               string
		policies, verified bool
		// made is whether managed resources are created.
		made, safe bool
	}{
		{name: "none", policies: true, verified: true, made: true, safe: true},
		{name: "the canary", policies: true, made: true, safe: true},
		{name: "all policies", verified: true, safe: true},
		{name: "the canary and all policies", made: true},
	} {
		changed, made := 0, "none is created"
		for _, customer := range []customer{eksCustomer(), aksCustomer(), gkeCustomer()} {
			t.Run(row.name+" "+string(customer.cloud), func(t *testing.T) {
				c := newCanaryRow(t, customer, fmt.Sprintf("cafe0ca%d", i), row.policies, row.verified)
				condition, reason := fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported
				if !row.made {
					condition, reason = fleetv1alpha1.ConditionAdmissionEnforced, fleetv1alpha1.ReasonCanaryFailed
				}
				c.waitFor(condition, reason)
				resources := c.resources()
				if (len(resources) > 0) != row.made {
					t.Errorf("managed resources: want some: %v; got %d", row.made, len(resources))
				}
				for _, o := range resources {
					c.attack(&o)
				}
				mutations := c.cloud.Mutations()
				if (len(mutations) == 0) != row.safe {
					t.Errorf("want it safe: %v; requests to change the cloud: %v", row.safe, mutations)
				}
				changed += len(mutations)
				if len(resources) > 0 {
					made = "created"
				}
			})
		}
		found.add(row.name, verdict(changed == 0), made, did(changed))
	}
	if !t.Failed() {
		found.check(t)
	}
}

// canaryRow is an import in one of the hubs.
type canaryRow struct {
	t     *testing.T
	of    reflection.Cloud
	cloud *fakecloud.Cloud
	hub   client.Client
	imp   *fleetv1alpha1.ClusterImport
}

func newCanaryRow(t *testing.T, customer customer, cluster string, policies, verified bool) *canaryRow {
	t.Helper()
	name := "canary-" + cluster + "-" + strings.ToLower(string(customer.cloud))
	c := &canaryRow{t: t, of: customer.cloud, cloud: fakecloud.New(), imp: customer.newImport(name, cluster)}
	c.imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone}
	customer.add(c.cloud, cluster, fakecloud.API{})
	t.Cleanup(c.clean)
	var o importer.Options
	if policies {
		installPolicies(t, hub)
		c.eventually("the policies are enforced", func(ctx context.Context) (bool, error) {
			return takeover.Verify(ctx, hub, namespace) == nil, nil
		})
	}
	if !verified {
		o.Verify = func(context.Context, string) error { return nil }
	}
	c.hub = runImports(t, config, c.cloud, o)
	if err := c.hub.Create(t.Context(), c.imp); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *canaryRow) eventually(what string, check func(context.Context) (bool, error)) {
	c.t.Helper()
	if err := testenv.Poll(c.t.Context(), testenv.Patience, check); err != nil {
		c.t.Fatalf("%s: %v: %v", what, err, c.imp.Status.Conditions)
	}
}

func (c *canaryRow) waitFor(condition, reason string) {
	c.t.Helper()
	c.eventually(condition+" "+reason, func(ctx context.Context) (bool, error) {
		if err := c.hub.Get(ctx, client.ObjectKeyFromObject(c.imp), c.imp); err != nil {
			return false, err
		}
		now := meta.FindStatusCondition(c.imp.Status.Conditions, condition)
		return now != nil && now.Reason == reason, nil
	})
}

// resources returns the managed resources of the import, as the importer created them.
func (c *canaryRow) resources() []unstructured.Unstructured {
	c.t.Helper()
	var all []unstructured.Unstructured
	for _, kind := range reflection.Kinds(c.of) {
		all = append(all, c.labelled(kind.Namespaced())...)
	}
	return all
}

func (c *canaryRow) labelled(kind schema.GroupKind) []unstructured.Unstructured {
	c.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.WithVersion(versions[kind]))
	label := client.MatchingLabels{fleetv1alpha1.ImportNameLabel: c.imp.Name}
	if err := hub.List(context.WithoutCancel(c.t.Context()), list, label); err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// attack allows a managed resource to be deleted in the cloud, and deletes it.
func (c *canaryRow) attack(o *unstructured.Unstructured) {
	c.t.Helper()
	// To allow more, a user has to set the values that the CRD requires for that.
	allow := []byte(`{"spec":{"managementPolicies":["Observe","Delete"]}}`)
	if err := hub.Patch(c.t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", allow)); err != nil && !apierrors.IsForbidden(err) {
		c.t.Fatal(err)
	}
	if err := hub.Delete(c.t.Context(), o.DeepCopy()); client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	c.eventually("the provider lets "+o.GetKind()+" go", func(ctx context.Context) (bool, error) {
		now := o.DeepCopy()
		err := hub.Get(ctx, client.ObjectKeyFromObject(o), now)
		return apierrors.IsNotFound(err) || now.GetUID() != o.GetUID() || len(c.cloud.Mutations()) > 0, client.IgnoreNotFound(err)
	})
}

// clean removes what is left of the import, after everything has stopped.
func (c *canaryRow) clean() {
	ctx := context.WithoutCancel(c.t.Context())
	kinds := []schema.GroupKind{{Group: "fleet.masthead.dev", Kind: "ClusterImport"}}
	left := []unstructured.Unstructured{*asObject(kinds[0].WithVersion("v1alpha1"), c.imp)}
	for _, kind := range reflection.ReflectedKinds(c.of) {
		left = append(left, c.labelled(kind)...)
	}
	for _, o := range append(left, c.resources()...) {
		patch := []byte(`{"metadata":{"finalizers":null,"annotations":{"` + takeover.AllowUnimportAnnotation + `":"` + string(c.imp.UID) + `"}}}`)
		err := hub.Patch(ctx, &o, client.RawPatch("application/merge-patch+json", patch))
		if err == nil {
			err = hub.Delete(ctx, &o)
		}
		if client.IgnoreNotFound(err) != nil {
			c.t.Errorf("cannot remove %s %q: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// asObject returns a reference to an object of a kind: its namespace and its name.
func asObject(gvk schema.GroupVersionKind, o client.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	return u
}
