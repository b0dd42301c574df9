// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// dependencyKeys name the Applications that an Application depends on. They are the keys of an index by which those
// that depend on an Application are found: the other direction.
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

// DependenciesOf is what is known about the dependencies of an Application. get returns the Application of a name, or
// nil if there is none; known is false while it is not known which Applications there are.
//
// A dependency is installed if there is an Application of its name in the namespace, as the KEP says, whatever that
// Application says of itself. One that is being deleted is not: it will not be there when somebody needs it.
func DependenciesOf(app *appsv1alpha1.Application, known bool, get func(record.ApplicationKey) *appsv1alpha1.Application) []DependencyView {
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

// ConcernsDependents is whether a change of an Application is one that those which depend on it show: that it comes,
// begins to go, goes, or says something else of itself. before is nil if it comes, after if it is gone.
func ConcernsDependents(before, after *appsv1alpha1.Application) bool {
	if before == nil || after == nil {
		return before != after
	}
	return before.UID != after.UID ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Status.Ready != after.Status.Ready ||
		before.Status.Health != after.Status.Health
}
