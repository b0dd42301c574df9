// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// membersPolicy is the name of the policy about objects that name an imported cluster.
const membersPolicy = "members.imports.masthead.dev"

// installed holds the objects of a policy that are in a hub.
type installed struct {
	hub     client.Client
	objects []client.Object
}

// installMembers installs the policy about objects that name an imported cluster.
func (f *coreFleet) installMembers() *installed {
	f.t.Helper()
	policies, err := takeover.Policies()
	if err != nil {
		f.t.Fatal(err)
	}
	i := &installed{hub: f.hub}
	for _, p := range policies {
		if p.Policy.Name == membersPolicy {
			i.objects = []client.Object{p.Policy, p.Binding}
		}
	}
	if len(i.objects) == 0 {
		f.t.Fatalf("there is no policy %s", membersPolicy)
	}
	for _, o := range i.objects {
		if err := f.hub.Create(f.t.Context(), o); err != nil {
			f.t.Fatal(err)
		}
	}
	return i
}

// remove removes the policy. Callers that rely on that retry until the hub accepts their request.
func (i *installed) remove(t *testing.T) {
	t.Helper()
	for _, o := range i.objects {
		if err := client.IgnoreNotFound(i.hub.Delete(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
}

// createImport creates the ClusterImport of the row, whose status says that it created the Cluster, and returns its
// UID.
func (r *coreRow) createImport() types.UID {
	r.t.Helper()
	imp := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"eks": map[string]any{"region": region, "clusterName": r.name}, "providerConfigRef": map[string]any{"name": "customer"},
	}}}
	imp.SetGroupVersionKind(fleetv1alpha1.GroupVersion.WithKind("ClusterImport"))
	imp.SetNamespace(namespace)
	imp.SetName(r.name)
	r.createWithStatus(imp, map[string]any{"references": []any{
		map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "namespace": namespace, "name": r.name},
	}})
	return imp.GetUID()
}

// foreignInfrastructure returns an object of another user that lists the Nodes of the cluster.
func (r *coreRow) foreignInfrastructure() *unstructured.Unstructured {
	object, err := imported.Object(schema.GroupKind{Group: infrastructureGroup, Kind: "AWSManagedMachinePool"}, "v1beta2", namespace, "theirs-"+r.name)
	if err != nil {
		r.t.Fatal(err)
	}
	object.SetLabels(nil)
	object.SetAnnotations(nil)
	r.set(object, r.list(r.providerIDs()), "spec", "providerIDList")
	return object
}

// foreignPool returns a MachinePool of another user that names the cluster.
func (r *coreRow) foreignPool() *unstructured.Unstructured {
	pool, err := imported.Object(schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "MachinePool"}, "v1beta2", namespace, "theirs-"+r.name)
	if err != nil {
		r.t.Fatal(err)
	}
	pool.SetLabels(nil)
	pool.SetAnnotations(nil)
	r.set(pool, r.name, "spec", "clusterName")
	r.set(pool, r.name, "spec", "template", "spec", "clusterName")
	r.set(pool, int64(2), "spec", "replicas")
	return pool
}

// createForeign creates a MachinePool of another user for the imported cluster, with infrastructure of that user. If
// accepted is false, it waits until the policy refuses the MachinePool instead of creating it.
func (r *coreRow) createForeign(accepted bool) {
	r.t.Helper()
	r.accepted = accepted
	r.createWithStatus(r.foreignInfrastructure(), map[string]any{"ready": true, "replicas": int64(2)})
	r.waitFor("the hub decides about the MachinePool", func(ctx context.Context) (bool, string) {
		if !accepted {
			err := r.hub.Create(ctx, r.foreignPool(), client.DryRunAll)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), membersPolicy), fmt.Sprint(err)
		}
		err := r.hub.Create(ctx, r.foreignPool())
		return err == nil, fmt.Sprint(err)
	})
}
