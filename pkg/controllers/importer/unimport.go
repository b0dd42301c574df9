// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// unimport removes everything that the import created, reports it, and then removes the finalizer. A foreign finalizer
// can keep the import for ever, and the policy about members relies on its status. For the same reason an import whose
// finalizer a user removed is requeued as long as its status names anything.
func (r *Reconciler) unimport(ctx context.Context, s *scope) (res result, err error) {
	if res.gone = !mayHave(s.imp); res.gone {
		return res, nil
	}
	res, left, err := r.takeEverythingBack(ctx, s)
	res.again = workload.Retry
	if err == nil && !res.emptied {
		err = stop(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonUnimporting, "Waiting for the deletion of %s", left)
	}
	if err != nil {
		return res, err
	}
	if err := r.report(ctx, s, res); err != nil {
		return res, err
	}
	now := &fleetv1alpha1.ClusterImport{} // The report gave it another version.
	switch err := r.live.Get(ctx, s.key(), now); {
	case apierrors.IsNotFound(err) || err == nil && now.UID != s.imp.UID:
		res.gone = true
		return res, nil
	case err != nil:
		return res, fmt.Errorf("cannot get ClusterImport %q: %w", s.key(), err)
	}
	s.imp = now // Should the next step fail, that is reported as a change of what is reported here.
	err = r.setFinalizer(ctx, now, false)
	res.gone = err == nil
	return res, err
}

// mayHave reports whether an import can have created anything: the finalizer is added before everything else, and the
// status names what exists without it.
func mayHave(imp *fleetv1alpha1.ClusterImport) bool {
	return controllerutil.ContainsFinalizer(imp, fleetv1alpha1.ImportFinalizer) || len(imp.Status.References) > 0 || imp.Status.Kubeconfig != nil
}

// revoke removes everything that the import created, because it may no longer use its provider configuration: existing
// objects would go on observing with its rights.
func (r *Reconciler) revoke(ctx context.Context, s *scope) (res result, err error) {
	if !mayHave(s.imp) {
		return res, nil
	}
	res, left, err := r.takeEverythingBack(ctx, s)
	if res.emptied {
		return res, r.setFinalizer(ctx, s.imp, false)
	}
	if left != "" { // What is left waits for finalizers. What observes does not.
		_, failed := r.removeAllManaged(ctx, s)
		err = errors.Join(err, failed)
	}
	return res, err
}

// takeEverythingBack removes everything that an import created, in an order in which nothing can act on the cluster in
// between. It does what can be done, and says how many objects of which kind block the rest. The managed resources do
// not wait for what fails: they observe with a provider configuration, and go although the hub keeps a reflection.
// Everything is read from the API server, to include what was just created.
func (r *Reconciler) takeEverythingBack(ctx context.Context, s *scope) (res result, left string, err error) {
	core, providers := reflection.CoreKinds(), reflection.ProviderKinds(s.wanted.Cloud)
	slices.Reverse(providers)
	steps := []struct {
		what  string
		do    func(context.Context, *scope) (left int, err error)
		kinds []schema.GroupKind
		waits bool
	}{
		{"the Secret with the kubeconfig", r.kubeconfigs.removeKubeconfig, []schema.GroupKind{{Kind: "Secret"}}, true},
		{"the objects of Cluster API's provider", r.takeBackAll(providers...), providers, true},
		{"the Cluster and its MachinePools, for which Cluster API core has to remove its finalizers", r.takeBackAll(core...), core, true},
		{"the managed resources, for which the Crossplane provider has to remove its finalizers", r.removeAllManaged, nil, false},
	}
	for _, step := range steps {
		if left != "" || err != nil && step.waits {
			continue
		}
		switch found, failed := step.do(ctx, s); {
		case failed != nil:
			err = errors.Join(err, failed)
		case found == 0:
			res.removed = append(res.removed, step.kinds...)
		case left == "":
			left = fmt.Sprintf("%d objects: %s", found, step.what)
		}
	}
	if res.emptied = left == "" && err == nil; !res.emptied {
		res.again = workload.Retry
	}
	return res, left, err
}

// takeBackAll removes all reflections of the kinds, and returns how many are left. After a failure the following kinds
// stay: an identity that the provider must refuse does not go before what names it.
func (r *Reconciler) takeBackAll(kinds ...schema.GroupKind) func(context.Context, *scope) (int, error) {
	return func(ctx context.Context, s *scope) (left int, err error) {
		for _, kind := range kinds {
			found, failed := r.takeBackKind(ctx, s, kind)
			if failed == nil && found > 0 {
				found, failed = r.takeBackKind(ctx, s, kind) // Objects without finalizers are gone now.
			}
			if failed != nil {
				return left, failed
			}
			left += found
		}
		return left, nil
	}
}

// takeBackKind removes the reflections of a kind, and returns how many there were. One that cannot be removed does not
// keep the others.
func (r *Reconciler) takeBackKind(ctx context.Context, s *scope, kind schema.GroupKind) (int, error) {
	items, err := r.listLive(ctx, s, kind)
	for i := range items {
		err = errors.Join(err, r.takeBack(ctx, s, &items[i]))
	}
	return len(items), err
}

// listLive lists the objects of a kind that the import created. A kind that is no longer served has none.
func (r *Reconciler) listLive(ctx context.Context, s *scope, kind schema.GroupKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	err := r.whereServed(ctx, kind, func(gvk schema.GroupVersionKind) error {
		list.SetGroupVersionKind(gvk)
		return r.live.List(ctx, list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(s.imp.UID)})
	})
	if errors.Is(err, errNotServed) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", kind, err)
	}
	return r.own(s, list.Items), nil
}

// unpause lets core remove its finalizer from an object that is being deleted. The provider's objects and the
// credentials are already gone.
func (h *hubObjects) unpause(ctx context.Context, o *unstructured.Unstructured) error {
	if o.GroupVersionKind().Group != clusterv1.GroupVersion.Group {
		return nil
	}
	change := map[string]any{}
	if _, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]; paused {
		change["metadata"] = map[string]any{"annotations": map[string]any{clusterv1.PausedAnnotation: nil}}
	}
	if paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused"); paused {
		change["spec"] = map[string]any{"paused": nil}
	}
	if len(change) == 0 {
		return nil
	}
	return client.IgnoreNotFound(h.mergePatch(ctx, o, change))
}

// removeAllManaged removes the managed resources, each after a check of its policy, and returns how many are left.
func (r *Reconciler) removeAllManaged(ctx context.Context, s *scope) (left int, failed error) {
	for _, kind := range managedGroupKinds(s.wanted.Cloud) {
		items, err := r.listLive(ctx, s, kind)
		if !apierrors.IsForbidden(err) { // The rights are those to the group that the import used.
			failed = errors.Join(failed, err)
		}
		left += len(items)
		for i := range items {
			failed = errors.Join(failed, r.removeManaged(ctx, &items[i]))
		}
	}
	return left, failed
}

// managedGroupKinds are the kinds of a cloud's managed resources, in both of their groups.
func managedGroupKinds(cloud reflection.Cloud) (kinds []schema.GroupKind) {
	for _, kind := range reflection.Kinds(cloud) {
		kinds = append(kinds, kind.Namespaced(), kind.Legacy())
	}
	return kinds
}

// removeManaged deletes an observe-only managed resource in its observed state: one that may do more would delete the
// cluster.
func (h *hubObjects) removeManaged(ctx context.Context, m *unstructured.Unstructured) error {
	if err := verifyManaged(m); err != nil {
		return stop(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedPolicy,
			"%s; it is not deleted, because that could delete what it represents", err)
	}
	if m.GetDeletionTimestamp().IsZero() {
		return h.remove(ctx, m)
	}
	if isBorn(m) {
		release := map[string]any{"metadata": map[string]any{"annotations": map[string]any{reflection.ManagedPausedAnnotation: nil}}}
		return client.IgnoreNotFound(h.mergePatch(ctx, m, release))
	}
	return nil
}
