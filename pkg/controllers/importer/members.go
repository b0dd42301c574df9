// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
)

// clusterNameField is the field by which members of a cluster are looked up.
const clusterNameField = "spec.clusterName"

// memberKinds are those for which Cluster API core writes to the Nodes of the cluster that they name.
func memberKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, kind := range []string{"MachinePool", "MachineDeployment", "MachineSet", "Machine"} {
		kinds = append(kinds, clusterv1.GroupVersion.WithKind(kind))
	}
	return kinds
}

// newMembers caches objects that name a cluster, regardless of who owns them. Listing them in each pass of each import
// was rejected: that reads all Machines of a namespace, and sees a new one minutes later. It keeps what foreignMembers
// needs of each object, less than a kilobyte, and starts an informer for a kind on an import's first use.
func newMembers(mgr manager.Manager) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: slimMember,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a cache of Machines: %w", err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("cannot add a cache of Machines: %w", err)
	}
	return c, nil
}

// slimMember strips an object to what foreignMembers needs.
func slimMember(in any) (any, error) {
	o, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	slim := &unstructured.Unstructured{}
	slim.SetGroupVersionKind(o.GroupVersionKind())
	slim.SetNamespace(o.GetNamespace())
	slim.SetName(o.GetName())
	slim.SetUID(o.GetUID())
	slim.SetResourceVersion(o.GetResourceVersion())
	if uid := o.GetLabels()[fleetv1alpha1.ImportUIDLabel]; uid != "" {
		slim.SetLabels(map[string]string{fleetv1alpha1.ImportUIDLabel: uid})
	}
	if err := unstructured.SetNestedField(slim.Object, clusterName(o), "spec", "clusterName"); err != nil {
		return nil, fmt.Errorf("cannot keep the cluster name of a %s: %w", o.GetKind(), err)
	}
	return slim, nil
}

// clusterName is the cluster that an object names.
func clusterName(o *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(o.Object, "spec", "clusterName")
	return name
}

// byClusterName indexes members.
func byClusterName(o client.Object) []string {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return []string{clusterName(u)}
	}
	return nil
}

// importOfMember maps an object to the import whose cluster it names, if there is one: Machines of all other clusters
// are irrelevant here.
func (r *Reconciler) importOfMember(ctx context.Context, o client.Object) []reconcile.Request {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	key := types.NamespacedName{Namespace: u.GetNamespace(), Name: clusterName(u)}
	if err := r.hub.Get(ctx, key, &fleetv1alpha1.ClusterImport{}); err != nil {
		return nil // An import that is created later checks for members itself.
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// foreignMembers finds objects that name the cluster and make Cluster API core write to its Nodes. The policies refuse
// them once the cluster is imported; they may be older, or created while the policies were not enforced. While there
// are any, core gets no credentials. So this check runs even while the missing policies stop everything else.
func (r *Reconciler) foreignMembers(ctx context.Context, s *scope) (res result, err error) {
	for _, gvk := range memberKinds() {
		if _, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
			continue
		}
		if err := r.watchMembers(ctx, gvk); err != nil {
			return res, err
		}
		list := unstructuredList(gvk)
		if err := r.members.List(ctx, list, client.InNamespace(s.imp.Namespace), client.MatchingFields{clusterNameField: s.imp.Name}); err != nil {
			return res, fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if gvk.Kind == "MachinePool" && ownership.MarkedBy(o, s.wanted) {
				continue
			}
			if res, err = r.kubeconfigs.withdrawKubeconfig(ctx, s); err != nil {
				return res, err
			}
			return res, stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken,
				"The %s %q names this cluster, but was not created by this import: Cluster API core would write to the cluster's Nodes", gvk.Kind, o.GetName(),
			).RetriedAfter(workload.Retry)
		}
	}
	return res, nil
}
