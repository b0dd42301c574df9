// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// Reconciler reconciles ClusterImports.
type Reconciler struct {
	*hubObjects

	// kubeconfigs manages the Secrets with the kubeconfigs, and the answers of imported clusters.
	kubeconfigs *kubeconfigs

	// watch maps changes of a kind's objects with the label of an import to their ClusterImport.
	watch func(context.Context, schema.GroupVersionKind) error
	// watched are those kinds.
	watched func() []schema.GroupVersionKind
	// members holds the objects that name a cluster, by clusterNameField. watchMembers maps changes of one of their kinds
	// to the import of that cluster.
	members      client.Reader
	watchMembers func(context.Context, schema.GroupVersionKind) error

	mapper   meta.RESTMapper
	recorder events.EventRecorder
	clock    clock.Clock
	verify   func(ctx context.Context, namespace string) error

	// kinds caches what the hub serves for each cloud, and, for grantedKey, that the manager may import.
	kinds  *cache.LRUExpireCache
	states *states

	// outcomes are what the hub refuses, or others change, of the reflections.
	outcomes outcomes
}

func (r *Reconciler) setFinalizer(ctx context.Context, imp *fleetv1alpha1.ClusterImport, want bool) error {
	changed, change := imp.DeepCopy(), controllerutil.RemoveFinalizer
	if want {
		change = controllerutil.AddFinalizer
	}
	if !change(changed, fleetv1alpha1.ImportFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(imp, client.MergeFromWithOptimisticLock{})
	if err := r.hub.Patch(ctx, changed, patch, client.FieldOwner(fleetv1alpha1.ImportFieldManager)); err != nil {
		return fmt.Errorf("cannot set the finalizer of ClusterImport %q: %w", client.ObjectKeyFromObject(imp), err)
	}
	return nil
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.states.forget(key)
	r.outcomes.set(key, nil)
	r.kubeconfigs.forget(key)
}
