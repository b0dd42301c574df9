// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// Outcome is what came of a plan, to be told to the user.
type Outcome struct {
	// Silent says that there is nothing to tell: the claim is gone, or not ours to touch, or what there is to know will
	// come as an event.
	Silent bool

	// Hub is the object in the hub whose status the claim shall show; nil if there is none, or none of ours.
	Hub *unstructured.Unstructured

	// All is whether late fields and Secrets are brought as well.
	All bool

	// Current says that the spec of that object is what the claim says.
	Current bool

	// Problem is why the claim is not synchronised; nil if it is.
	Problem *condition.Problem

	// AsShown says that it is not known whether the claim is synchronised, so that its condition stays as it is shown.
	AsShown bool

	// Holder is who has the claim's name in the hub, if that is the problem.
	Holder string

	// Err is why this has to be tried again with back-off, after it was told.
	Err error

	// RetryAfter is when to look again, if nothing would tell that something has changed.
	RetryAfter time.Duration
}
