// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// dependencyKeys are the keys of an Application's dependencies, used to index its dependents.
func dependencyKeys(app *appsv1alpha1.Application) []record.ApplicationKey {
	keys := make([]record.ApplicationKey, 0, len(app.Spec.Dependencies))
	for _, name := range app.Spec.Dependencies {
		key := types.NamespacedName{Namespace: app.Namespace, Name: name}
		if name != "" && name != app.Name && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// BuildDependencies are the views of an Application's dependencies. get returns an Application by name, or nil if there
// is none; known is false while the Applications have not been listed.
//
// A dependency is installed if an Application of its name exists in the namespace, as the KEP says, regardless of its
// status. One that is being deleted does not count: it is about to disappear.
func BuildDependencies(app *appsv1alpha1.Application, known bool, get func(record.ApplicationKey) *appsv1alpha1.Application) []DependencyView {
	keys := dependencyKeys(app)
	views := make([]DependencyView, 0, len(keys))
	for _, key := range keys {
		view := DependencyView{name: key.Name, unseen: !known}
		if known {
			if on := get(key); on != nil && on.DeletionTimestamp.IsZero() {
				view.status = &on.Status
			}
		}
		views = append(views, view)
	}
	return views
}

// ConcernsDependents reports whether dependents show a change of an Application: creation, start and end of deletion,
// or a change of its status. before is nil on creation, after on deletion.
func ConcernsDependents(before, after *appsv1alpha1.Application) bool {
	if before == nil || after == nil {
		return before != after
	}
	return before.UID != after.UID ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Status.Ready != after.Status.Ready ||
		before.Status.Health != after.Status.Health
}
