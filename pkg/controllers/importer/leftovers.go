// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// leftoversPage is the page size of lists.
const leftoversPage = 500

// identity identifies a ClusterImport among others of the same name.
type identity struct {
	types.NamespacedName

	uid types.UID
}

// startLeftovers is a source of requests: once, as soon as the hub can be queried, it queues the deleted imports that
// have left objects behind. While the manager runs, the watches report them. They do not report earlier leftovers,
// because kinds are watched only once an import needs them.
func (r *Reconciler) startLeftovers(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			found, err := r.leftovers(ctx)
			if err == nil {
				for _, key := range found {
					queue.Add(reconcile.Request{NamespacedName: key})
				}
				return
			}
			again := scope.Resync // The rights can be granted at any time.
			if !isProblem(err) {
				log.FromContext(ctx).Error(err, "Cannot look for objects that imports have left")
				again = scope.Retry
			}
			select {
			case <-ctx.Done():
				return
			case <-r.clock.After(again):
			}
		}
	}()
	return nil
}

// leftovers lists the deleted imports that have left objects behind, by the labels of all objects that imports can
// create. The kinds of these objects are watched from now on. The manager never created objects of a kind that the
// hub does not serve, or that it has no rights to. Without those of config/imports, that is a problem, and nothing is
// listed.
func (r *Reconciler) leftovers(ctx context.Context) ([]types.NamespacedName, error) {
	if err := r.mayImport(ctx); err != nil {
		return nil, err
	}
	served, err := r.everyKind()
	if err != nil {
		return nil, err
	}
	left, kinds := map[identity]bool{}, []schema.GroupVersionKind{}
	for _, gvk := range served {
		some, err := r.identitiesIn(ctx, gvk, left)
		if err != nil {
			return nil, err
		}
		if some && gvk.Group != corev1.GroupName {
			kinds = append(kinds, gvk)
		}
	}
	imports := &metav1.PartialObjectMetadataList{}
	imports.SetGroupVersionKind(fleetv1alpha1.GroupVersion.WithKind("ClusterImport"))
	if err := r.live.List(ctx, imports); err != nil {
		return nil, fmt.Errorf("cannot list ClusterImports: %w", err)
	}
	for i := range imports.Items {
		delete(left, identity{client.ObjectKeyFromObject(&imports.Items[i]), imports.Items[i].UID})
	}
	if len(left) == 0 {
		return nil, nil
	}
	for _, gvk := range kinds {
		if err := r.watch(ctx, gvk); err != nil {
			return nil, err
		}
	}
	found := map[types.NamespacedName]bool{}
	for i := range left {
		found[i.NamespacedName] = true
	}
	return slices.Collect(maps.Keys(found)), nil
}

// everyKind lists the kinds that imports can create and that the hub serves, the managed resources first: they reveal
// the name of the cluster.
func (r *Reconciler) everyKind() ([]schema.GroupVersionKind, error) {
	var all []schema.GroupVersionKind
	add := func(gk schema.GroupKind, versions ...string) error {
		mapping, err := r.mapper.RESTMapping(gk, versions...)
		if err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("cannot find out whether the hub serves %s: %w", gk, err)
		}
		if err == nil && !slices.Contains(all, mapping.GroupVersionKind) {
			all = append(all, mapping.GroupVersionKind)
		}
		return nil
	}
	for _, name := range reflection.Clouds() {
		for _, kind := range madeKinds(name) {
			if err := errors.Join(add(kind.Namespaced()), add(kind.Legacy())); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range reflection.Clouds() {
		for _, gvk := range reflection.ReflectedKinds(name) {
			if err := add(gvk.GroupKind(), gvk.Version); err != nil {
				return nil, err
			}
		}
	}
	return append(all, corev1.SchemeGroupVersion.WithKind("Secret")), nil
}

// identitiesIn adds the imports that a kind's objects name as owner, and reports whether there are any.
func (r *Reconciler) identitiesIn(ctx context.Context, gvk schema.GroupVersionKind, into map[identity]bool) (some bool, err error) {
	for page := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		err := r.live.List(ctx, list, client.HasLabels{fleetv1alpha1.ImportUIDLabel}, client.Limit(leftoversPage), client.Continue(page))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return some, nil
		}
		if err != nil {
			return false, fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			of := identity{ownership.ImportNamedBy(o), types.UID(o.GetLabels()[fleetv1alpha1.ImportUIDLabel])}
			if of.Name != "" && of.Namespace != "" {
				into[of], some = true, true
			}
		}
		if page = list.GetContinue(); page == "" {
			return some, nil
		}
	}
}
