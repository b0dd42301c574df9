// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// An observation is everything that the status of an Application is computed from.
type observation struct {
	// application is as the API server has it, with the status that it has now.
	application *appsv1alpha1.Application

	// unseen says why nobody looks at the Application at all; nil if somebody does.
	unseen *condition.Problem

	// components are those that the spec names, one view for each, and those that were discovered, in any order.
	components []componentView

	// selected is how many objects belong to the Application.
	selected int32

	// dependencies are those that the spec names, one view for each, in any order.
	dependencies []dependencyView

	// healthCheck is what is known about the health check's Pod. It is the zero value without a health check.
	healthCheck healthcheck.View

	// ownedKinds are the kinds of which the Application owns objects.
	ownedKinds []metav1.GroupVersionKind

	// notServed are the kinds of which the spec has objects looked for, and which the cluster does not serve.
	notServed []string
}

// componentView is what is known about a component.
type componentView struct {
	// name is that of the component, kind is what the spec says of it.
	name string
	kind appsv1alpha1.ComponentKind

	// discovered is whether it was discovered. Then namespace is that of the object, and both the name and that of kind
	// are the object's; without them, the view is about all objects of the kind.
	discovered bool
	namespace  string

	// unseen says why Masthead cannot look; nil if it can. syncing is whether it may be able to soon.
	unseen  *condition.Problem
	syncing bool

	// held is what the status goes on saying of the component for the time being; nil if there is no need to.
	held *appsv1alpha1.ComponentStatus

	// problem is about what was found: that it could not be made the Application's own, or that the selector does not
	// match.
	problem *condition.Problem

	// found is the object; nil if there is none with the annotation.
	found *record.Component

	// installed is whether found is of the kind and the name, in the namespace, with the annotation and labels that match.
	installed bool
}

// dependencyView is what is known about a dependency.
type dependencyView struct {
	name string

	// unseen is whether Masthead cannot look.
	unseen bool

	// status is that of the Application; nil if there is none, or if it is being deleted.
	status *appsv1alpha1.ApplicationStatus
}

// viewOf is the view of a discovered object, or of what keeps Masthead from seeing any.
func viewOf(gvk schema.GroupVersionKind, key types.NamespacedName, unseen *condition.Problem) componentView {
	return componentView{
		discovered: true, name: key.Name, namespace: key.Namespace, unseen: unseen,
		kind: appsv1alpha1.ComponentKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: key.Name},
	}
}
