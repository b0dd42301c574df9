// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// hubName is the hub where clusters have names.
const hubName mcr.ClusterName = ""

// hubSource follows the hub as one cluster more, as long as the controller runs.
func (r *reconciler) hubSource(hub cluster.Cluster) source.TypedSource[Request] {
	return source.TypedFunc[Request](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
		w, err := r.newWorkload(hubName, hub, queue)
		if err != nil {
			return err
		}
		r.hub.Store(w)
		go func() { _ = w.Start(ctx) }()
		w.enqueue()
		return nil
	})
}

// instance is what is known of a cluster.
func (r *reconciler) instance(name mcr.ClusterName) (*workload, bool) {
	if name == hubName {
		w := r.hub.Load()
		return w, w != nil
	}
	return r.workloads.Get(name)
}

// whileLookedAfter calls fn if the cluster is engaged and the kind looked after, and keeps both so meanwhile: what is
// noted of a cluster that has gone would stay for ever.
func (r *reconciler) whileLookedAfter(w *workload, kind kindwatch.Kind, fn func()) {
	if w.inHub {
		w.ifLookedAfter(kind, fn)
		return
	}
	r.workloads.IfCurrent(w.name, w, func() { w.ifLookedAfter(kind, fn) })
}

// classUsers are the clusters that a class is about, with the hub.
type classUsers struct {
	connection.Classes

	hubClass string
}

// InClass implements connection.Classes.
func (c classUsers) InClass(class string) []mcr.ClusterName {
	names := c.Classes.InClass(class)
	if class == c.hubClass {
		names = append(names, hubName)
	}
	return names
}

// hasReferencesOfAnother is whether the references of an object are those of another object, for which they are
// resolved where that one is, and by what that one may reference.
//
// Crossplane copies the spec of a claim into its composite, which is cluster-scoped. There the references would lead to
// any namespace, although whoever wrote the claim may reference one. And what bears the source of a claim of a workload
// cluster, or has borne it, was written by a user of that cluster, who has no rights in the hub at all. A workload
// cluster may be the hub of others.
func hasReferencesOfAnother(obj *unstructured.Unstructured) bool {
	if kind, _, _ := unstructured.NestedString(obj.Object, "spec", "claimRef", "kind"); kind != "" {
		return true
	}
	annotations := obj.GetAnnotations()
	for _, origin := range [...]string{
		fleetv1alpha1.SourceUIDAnnotation, fleetv1alpha1.SourceNamespaceAnnotation, fleetv1alpha1.ReleasedFromAnnotation,
	} {
		if _, there := annotations[origin]; there {
			return true
		}
	}
	return false
}
