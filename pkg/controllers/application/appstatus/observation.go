// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// An Observation is everything that the status of an Application is computed from.
type Observation struct {
	// Application is as the API server has it, with the status that it has now.
	Application *appsv1alpha1.Application

	// unseen says why nobody looks at the Application at all; nil if somebody does.
	unseen *condition.Problem

	// Components are those that the spec names, one view for each, and those that were discovered, in any order.
	Components []ComponentView

	// Selected is how many objects belong to the Application.
	Selected int32

	// Dependencies are those that the spec names, one view for each, in any order.
	Dependencies []DependencyView

	// HealthCheck is what is known about the health check's Pod. It is the zero value without a health check.
	HealthCheck healthcheck.View

	// OwnedKinds are the kinds of which the Application owns objects.
	OwnedKinds []metav1.GroupVersionKind

	// NotServed are the kinds of which the spec has objects looked for, and which the cluster does not serve.
	NotServed []string
}

// ComponentView is what is known about a component.
type ComponentView struct {
	// Name is that of the component, Kind is what the spec says of it.
	Name string
	Kind appsv1alpha1.ComponentKind

	// discovered is whether it was discovered. Then Namespace is that of the object, and both Name and that of Kind
	// are the object's; without them, the view is about all objects of the kind.
	discovered bool
	Namespace  string

	// Unseen says why Masthead cannot look; nil if it can. Syncing is whether it may be able to soon.
	Unseen  *condition.Problem
	Syncing bool

	// held is what the status goes on saying of the component for the time being; nil if there is no need to.
	held *appsv1alpha1.ComponentStatus

	// Problem is about what was found: that it could not be made the Application's own, or that the selector does not
	// match.
	Problem *condition.Problem

	// Found is the object; nil if there is none with the annotation.
	Found *record.Component

	// Installed is whether Found is of the kind and the name, in the namespace, with the annotation and labels that
	// match.
	Installed bool
}

// DependencyView is what is known about a dependency.
type DependencyView struct {
	name string

	// unseen is whether Masthead cannot look.
	unseen bool

	// status is that of the Application; nil if there is none, or if it is being deleted.
	status *appsv1alpha1.ApplicationStatus
}

// ViewOf is the view of a discovered object, or of what keeps Masthead from seeing any.
func ViewOf(gvk schema.GroupVersionKind, key types.NamespacedName, unseen *condition.Problem) ComponentView {
	return ComponentView{
		discovered: true, Name: key.Name, Namespace: key.Namespace, Unseen: unseen,
		Kind: appsv1alpha1.ComponentKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: key.Name},
	}
}
