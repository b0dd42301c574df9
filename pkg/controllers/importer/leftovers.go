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
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// leftoversPage is how many objects are read at once.
const leftoversPage = 500

// identity is a ClusterImport, which another one of its name is not.
type identity struct {
	types.NamespacedName

	uid types.UID
}

// startLeftovers is a source of requests: once, as soon as the hub can be asked, the imports that are gone and have
// left something. While the manager runs, the watches tell of them. What was left before, no watch tells of, because
// kinds are watched once an import needs them.
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
			log.FromContext(ctx).Error(err, "Cannot look for what imports have left")
			select {
			case <-ctx.Done():
				return
			case <-r.clock.After(scope.Retry):
			}
		}
	}()
	return nil
}

// leftovers are the imports that are gone and have left something, by the labels of all objects that imports can make.
// The kinds of what they have left are watched from now on. A kind that the hub does not serve, or that the manager has
// no rights to, was never made by it.
func (r *Reconciler) leftovers(ctx context.Context) ([]types.NamespacedName, error) {
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

// everyKind are the kinds of all that imports can make and that the hub serves, the managed resources first: of those
// the name of the cluster is known.
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
	clouds := []reflection.Cloud{reflection.EKS, reflection.AKS, reflection.GKE}
	for _, name := range clouds {
		for _, kind := range madeKinds(name) {
			if err := errors.Join(add(kind.Namespaced()), add(kind.Legacy())); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range clouds {
		for _, gvk := range reflection.ReflectedKinds(name) {
			if err := add(gvk.GroupKind(), gvk.Version); err != nil {
				return nil, err
			}
		}
	}
	return append(all, corev1.SchemeGroupVersion.WithKind("Secret")), nil
}

// identitiesIn adds the imports that the objects of a kind name as theirs, and says whether there are any.
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
			of := identity{scope.ImportNamedBy(o), types.UID(o.GetLabels()[fleetv1alpha1.ImportUIDLabel])}
			if of.Name != "" && of.Namespace != "" {
				into[of], some = true, true
			}
		}
		if page = list.GetContinue(); page == "" {
			return some, nil
		}
	}
}
