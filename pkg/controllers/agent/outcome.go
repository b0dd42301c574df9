// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// outcome is what came of a plan, to be told to the user.
type outcome struct {
	// silent says that there is nothing to tell: the claim is gone, or not ours to touch, or what there is to know will
	// come as an event.
	silent bool

	// hub is the object in the hub whose status the claim shall show; nil if there is none, or none of ours.
	hub *unstructured.Unstructured

	// all is whether late fields and Secrets are brought as well.
	all bool

	// current says that the spec of that object is what the claim says.
	current bool

	// problem is why the claim is not synchronised; nil if it is.
	problem *condition.Problem

	// asShown says that it is not known whether the claim is synchronised, so that its condition stays as it is shown.
	asShown bool

	// holder is who has the claim's name in the hub, if that is the problem.
	holder string

	// err is why this has to be tried again with back-off, after it was told.
	err error

	// RetryAfter is when to look again, if nothing would tell that something has changed.
	retryAfter time.Duration
}
