// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// A Result is how one object fares, as far as it says so itself. It depends on nothing but the object: the same object
// has the same Result at any time.
type Result struct {
	// Health is one of Healthy, Suspended, Progressing, Unknown and Degraded.
	Health appsv1alpha1.Health

	// Reason is one word of letters and digits, at most 128, and empty only for Healthy.
	Reason string

	// Message is for people, at most 256 characters, without control characters.
	Message string
}

// An Assessor says how objects fare. Its methods may be called from everywhere.
type Assessor interface {
	// Assess says how an object fares. statusExpected is whether the API server has a status subresource for the kind, so
	// that an object without a status is one that nobody has looked at yet. The object is not changed and not kept.
	// Whatever is in it, Assess does not panic and returns a valid Result.
	Assess(obj *unstructured.Unstructured, statusExpected bool) Result

	// NeedsObject is whether objects of a kind have to be read whole, because more than their being there and their
	// metadata says how they fare.
	NeedsObject(kind schema.GroupKind) bool
}
