// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Update applies to existing objects, with force.
type Update struct {
	Client  client.Writer
	Manager string

	// Reader reads the object for callers who know it without all of its managedFields, only if they matter. Nil for
	// callers who know them.
	Reader client.Reader
}

// Apply makes an object match an apply configuration, which becomes the API server's answer. have is the object as the
// caller knows it; nil for one that want creates. If it has changed since, the answer is a conflict, or, unless want
// has a resource version, it is applied to as it is.
func (u Update) Apply(ctx context.Context, want, have *unstructured.Unstructured) error {
	if have == nil {
		return u.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(u.Manager))
	}
	var live *unstructured.Unstructured
	if wantsEmpty(applied(want), applied(have)) {
		var err error
		if live, err = u.live(ctx, have); err == nil {
			err = u.prepare(ctx, want, live, emptied(newNode(want, live, u.Manager)))
		}
		if err != nil && !errors.Is(err, errChanged) {
			return err
		}
	}
	err := u.apply(ctx, want)
	if !isAboutStored(err) {
		return err
	}
	if live == nil {
		var failed error
		if live, failed = u.live(ctx, have); errors.Is(failed, errChanged) {
			return err
		} else if failed != nil {
			return failed
		}
	}
	ops := retyped(newNode(want, live, u.Manager))
	if len(ops) == 0 {
		return err
	}
	if err := u.prepare(ctx, want, live, ops); err != nil {
		return err
	}
	if fields := live.GetManagedFields(); len(fields) > 0 {
		// The API server could not compare the object with its former state, and dropped them all.
		if err := u.prepare(ctx, want, live, []operation{{"add", "/metadata/managedFields", fields}}); err != nil {
			return err
		}
	}
	return u.apply(ctx, want)
}

// errChanged means that the object has changed since it was read: the apply is refused for that, if for anything.
var errChanged = errors.New("the object has changed")

// live returns have with its managedFields, or errChanged.
func (u Update) live(ctx context.Context, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.Reader == nil {
		return have.DeepCopy(), nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(have.GroupVersionKind())
	if err := u.Reader.Get(ctx, client.ObjectKeyFromObject(have), live); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot get %s %q: %w", have.GetKind(), client.ObjectKeyFromObject(have), err)
	}
	if live.GetUID() != have.GetUID() || live.GetResourceVersion() != have.GetResourceVersion() {
		return nil, errChanged
	}
	return live, nil
}

// beforeFirstApply is the manager to which an API server gives all fields of an object without managedFields.
const beforeFirstApply = "before-first-apply"

// apply applies, and ensures that fields can be removed later: an API server drops managedFields at every write to an
// object that it cannot convert, and then gives all fields, ours included, to a manager that never gives them up.
func (u Update) apply(ctx context.Context, want *unstructured.Unstructured) error {
	config := client.ApplyConfigurationFromUnstructured(want)
	if err := u.Client.Apply(ctx, config, client.FieldOwner(u.Manager), client.ForceOwnership); err != nil {
		return err
	}
	all := want.GetManagedFields()
	fields := slices.DeleteFunc(slices.Clone(all), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == beforeFirstApply
	})
	if len(fields) == len(all) || len(fields) == 0 { // To none, it would be given again.
		return nil
	}
	return u.patch(ctx, want, []operation{{"replace", "/metadata/managedFields", fields}})
}

// prepare patches an object to which want is applied next, if there are any operations.
func (u Update) prepare(ctx context.Context, want, live *unstructured.Unstructured, ops []operation) error {
	if len(ops) == 0 {
		return nil
	}
	fields := live.GetManagedFields()
	if err := u.patch(ctx, live, ops); err != nil {
		return err
	}
	live.SetManagedFields(fields)
	if want.GetResourceVersion() != "" {
		want.SetResourceVersion(live.GetResourceVersion())
	}
	return nil
}

// operation is one of a JSON patch. It can change a list's element and tell null from absent, as a merge patch cannot.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch patches an object in its known state.
func (u Update) patch(ctx context.Context, obj *unstructured.Unstructured, ops []operation) error {
	data, err := json.Marshal(append([]operation{
		{"replace", "/metadata/uid", obj.GetUID()},
		{"replace", "/metadata/resourceVersion", obj.GetResourceVersion()},
	}, ops...))
	if err != nil {
		return fmt.Errorf("cannot encode a patch: %w", err)
	}
	return u.Client.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(u.Manager))
}
