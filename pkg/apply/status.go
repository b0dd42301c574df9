// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status applies a status, given by a pointer, to an object, with force. If the object was deleted or replaced, which
// its watch reports too, it is not applied, and there is no error.
func Status(
	ctx context.Context, c client.Client, gvk schema.GroupVersionKind, obj client.Object, status any, manager string,
) (applied bool, err error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return false, fmt.Errorf("cannot encode the status of %s %q: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(obj.GetNamespace())
	u.SetName(obj.GetName())
	u.SetUID(obj.GetUID()) // An object deleted meanwhile must not be recreated without a spec.
	err = c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot apply the status of %s %q: %w", gvk.Kind, path.Join(obj.GetNamespace(), obj.GetName()), err)
	}
	return true, nil
}
