// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// A Result is an object's health, computed from that object alone. The same object has the same Result at any time.
type Result struct {
	// Health is one of Healthy, Suspended, Progressing, Unknown and Degraded.
	Health appsv1alpha1.Health

	// Reason is one word of letters and digits, at most 128, and empty only for Healthy.
	Reason string

	// Message is for users, at most 256 characters, without control characters.
	Message string
}

// An Assessor computes the health of objects. Its methods are safe for concurrent use.
type Assessor interface {
	// Assess returns the health of an object. statusExpected says that the API server has a status subresource for the
	// kind, so an object without a status has not been observed yet. The object is neither changed nor retained.
	// Regardless of what it contains, Assess does not panic and returns a valid Result.
	Assess(obj *unstructured.Unstructured, statusExpected bool) Result

	// NeedsObject reports whether objects of a kind must be read whole, because their health depends on more than their
	// existence and metadata.
	NeedsObject(kind schema.GroupKind) bool
}
