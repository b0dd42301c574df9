// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/health"
)

// A record is what is kept of an object that is, or was, or says that it is, a component of an Application. It takes the place of
// the object in memory.
type record struct {
	key             types.NamespacedName
	uid             types.UID
	resourceVersion string

	// application is the value of the annotation; empty if there is none.
	application string

	// labels are those of the object.
	labels map[string]string

	// owners are the UIDs of the Applications in its owner references, and references is the number of all of these.
	owners     []types.UID
	references int

	// deleting is whether it is being deleted, ignored whether its annotation leaves it out of the health of its Application.
	deleting, ignored bool

	health health.Result
}
