// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
)

// hubObjects reads and writes the objects that imports create in the hub.
type hubObjects struct {
	// hub writes, and reads ClusterImports from the cache; it reads Secrets and unstructured objects live.
	hub client.Client
	// live reads from the API server.
	live client.Reader
	// owned holds only objects with the label of an import.
	owned client.Reader
}

// appliedAnnotation holds a hash of what was last applied to an object, so that fields which are no longer wanted are
// detected.
const appliedAnnotation = "fleet.masthead.dev/applied"

// stamped returns the object with its hash.
func stamped(want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	content, err := json.Marshal(want.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", want.GetKind(), err)
	}
	sum := sha256.Sum256(content)
	out := want.DeepCopy()
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[appliedAnnotation] = hex.EncodeToString(sum[:8])
	out.SetAnnotations(annotations)
	return out, nil
}

// find returns the object of that name, or a NotFound error. An object that is not the import's is a problem. Only what
// is not in the cache of the imports' objects is read from the API server.
func (h *hubObjects) find(ctx context.Context, s *scope, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(want.GroupVersionKind())
	err := h.owned.Get(ctx, client.ObjectKeyFromObject(want), there)
	if apierrors.IsNotFound(err) {
		err = h.live.Get(ctx, client.ObjectKeyFromObject(want), there)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot get %s %q: %w", want.GetKind(), want.GetName(), err)
	case !ownership.MarkedBy(there, s.wanted):
		return nil, nameTaken(want.GetKind(), want.GetName())
	}
	return there, nil
}

// isAllowed reports whether the hub grants the manager a right.
func (h *hubObjects) isAllowed(ctx context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
	if err := h.hub.Create(ctx, review); err != nil {
		return false, fmt.Errorf("cannot query the hub for the manager's rights: %w", err)
	}
	return review.Status.Allowed, nil
}

// create only creates an object: if one of that name appeared in the meantime, the next pass handles it.
func (h *hubObjects) create(ctx context.Context, object *unstructured.Unstructured, options ...client.CreateOption) error {
	options = append(options, client.FieldOwner(fleetv1alpha1.ImportFieldManager), client.FieldValidation(metav1.FieldValidationStrict))
	err := h.hub.Create(ctx, object, options...)
	if err != nil {
		return fmt.Errorf("cannot create %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// update makes an object of the import match what is wanted.
func (h *hubObjects) update(ctx context.Context, there, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !there.GetDeletionTimestamp().IsZero() {
		return there, nil
	}
	want = want.DeepCopy()
	if there.GetAnnotations()[appliedAnnotation] == want.GetAnnotations()[appliedAnnotation] && apply.Covers(there.Object, want.Object) {
		return there, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	if err := h.live.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		return nil, fmt.Errorf("cannot get %s %q: %w", want.GetKind(), want.GetName(), err)
	}
	if live.GetUID() != there.GetUID() {
		return nil, apierrors.NewConflict(groupResource(want), want.GetName(), errors.New("it was replaced"))
	}
	if err := h.takeFields(ctx, live); err != nil {
		return nil, err
	}
	want.SetUID(there.GetUID())
	if err := (apply.Update{Client: h.hub, Manager: fleetv1alpha1.ImportFieldManager}).Apply(ctx, want, live); err != nil {
		return nil, fmt.Errorf("cannot apply %s %q: %w", want.GetKind(), want.GetName(), err)
	}
	return want, nil
}

// takeFields lets an apply remove what is no longer wanted: the create recorded the fields under an update of our field
// manager, and earlier writes in a version that may not be served any more.
func (h *hubObjects) takeFields(ctx context.Context, live *unstructured.Unstructured) error {
	taken := live.DeepCopy()
	fields := taken.GetManagedFields()
	for i := range fields {
		if fields[i].Manager == fleetv1alpha1.ImportFieldManager {
			fields[i].APIVersion = live.GetAPIVersion()
		}
	}
	taken.SetManagedFields(fields)
	err := csaupgrade.UpgradeManagedFields(taken, sets.New(fleetv1alpha1.ImportFieldManager), fleetv1alpha1.ImportFieldManager)
	if err == nil && !equality.Semantic.DeepEqual(taken.GetManagedFields(), live.GetManagedFields()) {
		err = h.mergePatch(ctx, live, map[string]any{"metadata": map[string]any{"managedFields": taken.GetManagedFields()}})
	}
	if err != nil {
		return fmt.Errorf("cannot take over the fields of %s %q: %w", live.GetKind(), live.GetName(), err)
	}
	return nil
}

// updateStatus makes the status of an object match what is wanted.
func (h *hubObjects) updateStatus(ctx context.Context, there, want *unstructured.Unstructured) error {
	if want == nil || !there.GetDeletionTimestamp().IsZero() || apply.Covers(there.Object, map[string]any{"status": want.Object["status"]}) {
		return nil
	}
	want = want.DeepCopy()
	want.SetUID(there.GetUID())
	err := h.hub.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(fleetv1alpha1.ImportFieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("cannot apply the status of %s %q: %w", want.GetKind(), want.GetName(), err)
	}
	return nil
}

// remove deletes an object of the import in its observed state.
func (h *hubObjects) remove(ctx context.Context, object client.Object) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := h.hub.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %s %q: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
	return nil
}

// mergePatch changes metadata or spec of an object in its observed state.
func (h *hubObjects) mergePatch(ctx context.Context, object *unstructured.Unstructured, change map[string]any) error {
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["resourceVersion"], metadata["uid"] = object.GetResourceVersion(), string(object.GetUID())
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("cannot encode a patch: %w", err)
	}
	if err := h.hub.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fleetv1alpha1.ImportFieldManager)); err != nil {
		return fmt.Errorf("cannot patch %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func nameTaken(kind, name string) error {
	return stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken, "There is a %s %q that was not created by this import; it is left alone", kind, name)
}

func unstructuredList(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(gvk)
	return l
}

func groupResource(o client.Object) schema.GroupResource {
	gk := o.GetObjectKind().GroupVersionKind().GroupKind()
	return schema.GroupResource{Group: gk.Group, Resource: gk.Kind}
}
