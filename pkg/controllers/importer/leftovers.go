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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
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
			again := workload.Resync // The rights can be granted at any time.
			if !isProblem(err) {
				log.FromContext(ctx).Error(err, "Cannot look for objects that imports have left")
				again = workload.Retry
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
	left, watched := map[identity]bool{}, []schema.GroupVersionKind{}
	for _, kind := range everyKind() {
		err := r.whereServed(ctx, kind, func(gvk schema.GroupVersionKind) error {
			some, err := r.identitiesIn(ctx, gvk, left)
			if some && gvk.Group != corev1.GroupName {
				watched = append(watched, gvk)
			}
			return err
		})
		if err != nil && !excludesObjects(err) {
			return nil, err
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
	for _, gvk := range watched {
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

// excludesObjects reports whether an error says that imports cannot have created objects of a kind.
func excludesObjects(err error) bool {
	_, unserved := errors.AsType[*reflection.NotServedError](err)
	return unserved || errors.Is(err, errNotServed) || apierrors.IsForbidden(err)
}

// everyKind lists the kinds that imports can create.
func everyKind() []schema.GroupKind {
	kinds := append([]schema.GroupKind{{Kind: "Secret"}}, reflection.CoreKinds()...)
	for _, name := range reflection.Clouds() {
		kinds = append(append(kinds, managedGroupKinds(name)...), reflection.ProviderKinds(name)...)
	}
	return kinds
}

// identitiesIn adds the imports that a kind's objects name as owner, and reports whether there are any.
func (r *Reconciler) identitiesIn(ctx context.Context, gvk schema.GroupVersionKind, into map[identity]bool) (some bool, err error) {
	for page := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		err := r.live.List(ctx, list, client.HasLabels{fleetv1alpha1.ImportUIDLabel}, client.Limit(leftoversPage), client.Continue(page))
		if err != nil {
			return some, fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
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

// deleteOrphans removes the leftovers of deleted imports of a name, whose finalizer a user removed. An existing import
// of that name is left alone. It runs the steps of un-import, with all of their checks, and reports whether something
// is left.
//
// The Secret with the kubeconfig is also looked up by name, unless mayHave says that the existing import has it.
func (r *Reconciler) deleteOrphans(ctx context.Context, key types.NamespacedName, there types.UID, mayHave bool) (left bool, err error) {
	orphans, err := r.orphans(ctx, key, !mayHave)
	if err != nil {
		return false, err
	}
	for _, orphan := range orphans {
		if orphan.imp.UID == there {
			continue
		}
		res, _, err := r.takeEverythingBack(ctx, orphan)
		if err != nil {
			return false, fmt.Errorf(
				"cannot remove the objects that the ClusterImport %q with the UID %s has left: %w", key, orphan.imp.UID, err)
		}
		left = left || !res.emptied
	}
	return left, nil
}

// finalize handles a request for an import that does not exist.
func (r *Reconciler) finalize(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	r.forget(key)
	if err := r.mayImport(ctx); err != nil {
		if isProblem(err) {
			return reconcile.Result{}, nil // It may remove nothing. When it may, leftovers finds what is left.
		}
		return reconcile.Result{}, err
	}
	// The cache may not have it yet.
	there := &fleetv1alpha1.ClusterImport{}
	if err := r.live.Get(ctx, key, there); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("cannot get ClusterImport %q: %w", key, err)
	}
	left, err := r.deleteOrphans(ctx, key, there.UID, mayHave(there))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: workload.Retry}, nil
	}
	if left {
		return reconcile.Result{RequeueAfter: workload.Retry}, err
	}
	return reconcile.Result{}, err
}

// checkPrevious checks that nothing of an earlier import of the same name blocks this one.
func (r *Reconciler) checkPrevious(ctx context.Context, s *scope) error {
	left, err := r.deleteOrphans(ctx, s.key(), s.imp.UID, mayHave(s.imp))
	if err != nil || !left {
		return err
	}
	return stop(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonWaitingForProvider,
		"Waiting for the deletion of the objects of an earlier ClusterImport of this name").RetriedAfter(workload.Retry)
}

// orphans are the imports of a name, one for each UID, reconstructed from the objects' labels.
func (r *Reconciler) orphans(ctx context.Context, key types.NamespacedName, withSecret bool) ([]*scope, error) {
	left := map[types.UID][]*unstructured.Unstructured{}
	for _, gvk := range r.watched() {
		list := unstructuredList(gvk)
		labels := client.MatchingLabels{fleetv1alpha1.ImportNamespaceLabel: key.Namespace, fleetv1alpha1.ImportNameLabel: key.Name}
		if err := r.owned.List(ctx, list, labels); err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
		}
		for i := range list.Items {
			uid := types.UID(list.Items[i].GetLabels()[fleetv1alpha1.ImportUIDLabel])
			left[uid] = append(left[uid], &list.Items[i])
		}
	}
	if withSecret {
		uid, err := r.importOfKubeconfig(ctx, key)
		if err != nil {
			return nil, err
		}
		if _, found := left[uid]; uid != "" && !found {
			left[uid] = nil // The Secret is all that is left.
		}
	}
	var all []*scope
	for uid, objects := range left {
		all = append(all, newOrphanScope(key, uid, objects))
	}
	return all, nil
}

// importOfKubeconfig is the UID of the import of a name that created the kubeconfig of this name; "" if none did. A
// Secret whose labels name another import is ignored.
func (r *Reconciler) importOfKubeconfig(ctx context.Context, key types.NamespacedName) (types.UID, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	name := ownership.KubeconfigName(&fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Name: key.Name}})
	err := r.live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("cannot get Secret %q: %w", name, err)
	}
	if ownership.ImportNamedBy(secret) != key {
		return "", nil
	}
	return types.UID(secret.Labels[fleetv1alpha1.ImportUIDLabel]), nil
}
