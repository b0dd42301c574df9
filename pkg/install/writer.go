// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// Operations on an object of a workload cluster, as in metrics.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
)

// Objects are the objects of a resource in a workload cluster. dynamic.ResourceInterface implements it.
type Objects interface {
	Get(ctx context.Context, name string, o metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error)
	Create(
		ctx context.Context, obj *unstructured.Unstructured, o metav1.CreateOptions, subresources ...string,
	) (*unstructured.Unstructured, error)
	Update(
		ctx context.Context, obj *unstructured.Unstructured, o metav1.UpdateOptions, subresources ...string,
	) (*unstructured.Unstructured, error)
}

// Deleter deletes them. It is separate from Objects, so that installers that never delete cannot.
// dynamic.ResourceInterface implements it, too.
type Deleter interface {
	Delete(ctx context.Context, name string, o metav1.DeleteOptions, subresources ...string) error
}

// Writer writes objects of a resource in one workload cluster on behalf of a hub. The agent, which uses other clients,
// has its own writer: its definitions have no Record.
type Writer struct {
	Objects Objects
	Owner   hubidentity.Owner

	// Timeout bounds each request.
	Timeout time.Duration

	// Wrote is called for each successful write; it may be nil.
	Wrote func(what string)
}

// Write creates an object, or replaces have, and returns the API server's result. of returns the object to write over
// have. The expected generation is written into it; if that was wrong, because the content was right already, it is
// written once more.
func (w Writer) Write(
	ctx context.Context, have *unstructured.Unstructured, generation int64,
	of func(have *unstructured.Unstructured, generation int64) *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	for range 2 {
		got, err := w.put(ctx, of(have, generation), have == nil)
		if err != nil || got.GetGeneration() == generation {
			return got, err
		}
		have, generation = got, got.GetGeneration()
	}
	return have, nil
}

func (w Writer) put(ctx context.Context, obj *unstructured.Unstructured, create bool) (got *unstructured.Unstructured, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	obj.SetLabels(w.Owner.Stamp(obj.GetLabels()))
	manager, what := w.Owner.FieldManager(fleetv1alpha1.FieldManager), Update
	if create {
		what = Create
		got, err = w.Objects.Create(ctx, obj, metav1.CreateOptions{FieldManager: manager})
	} else {
		got, err = w.Objects.Update(ctx, obj, metav1.UpdateOptions{FieldManager: manager})
	}
	if err == nil {
		w.wrote(what)
	}
	return got, err
}

// Get reads an object.
func (w Writer) Get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	return w.Objects.Get(ctx, name, metav1.GetOptions{})
}

// Remove deletes an object if it is still in the state that was read.
func (w Writer) Remove(ctx context.Context, from Deleter, have *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	unchanged := Unchanged(have)
	err := from.Delete(ctx, have.GetName(), metav1.DeleteOptions{Preconditions: &unchanged})
	if err == nil {
		w.wrote(Delete)
	}
	return err
}

func (w Writer) wrote(what string) {
	if w.Wrote != nil {
		w.Wrote(what)
	}
}

// Unchanged returns preconditions that make an API server delete an object only if it is unchanged: one that was taken
// over meanwhile is kept.
func Unchanged(obj metav1.Object) metav1.Preconditions {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return metav1.Preconditions{UID: &uid, ResourceVersion: &version}
}
