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

// An Observation is the input from which the status of an Application is computed.
type Observation struct {
	// Application is as stored in the API server, with its current status.
	Application *appsv1alpha1.Application

	// unseen says why the Application is not observed at all; nil if it is.
	unseen *condition.Error

	// Components are those in the spec, one view each, and the discovered ones, in any order.
	Components []ComponentView

	// Selected is the number of objects that belong to the Application.
	Selected int32

	// Dependencies are those in the spec, one view each, in any order.
	Dependencies []DependencyView

	// HealthCheck is the state of the health check's Pod; the zero value without a health check.
	HealthCheck healthcheck.View

	// OwnedKinds are the kinds of objects that the Application owns.
	OwnedKinds []metav1.GroupVersionKind

	// NotServed are the kinds that the spec discovers and the cluster does not serve.
	NotServed []string
}

// ComponentView is the observed state of a component.
type ComponentView struct {
	// Name is the component's name, Kind its entry in the spec.
	Name string
	Kind appsv1alpha1.ComponentKind

	// discovered reports whether it was discovered. Then Namespace, Name and the name in Kind are the object's; without
	// them, the view covers all objects of the kind.
	discovered bool
	Namespace  string

	// Unseen says why Masthead cannot observe it; nil if it can. Syncing reports whether that may end soon.
	Unseen  *condition.Error
	Syncing bool

	// held is the previous status entry while it is kept; nil otherwise.
	held *appsv1alpha1.ComponentStatus

	// Problem is a problem with the object found: it could not be adopted, or the selector does not match.
	Problem *condition.Error

	// Found is the object; nil if there is none with the annotation.
	Found *record.Component

	// Installed reports whether Found matches in kind, name, namespace, annotation and labels.
	Installed bool
}

// DependencyView is the observed state of a dependency.
type DependencyView struct {
	name string

	// unseen reports whether Masthead cannot observe it.
	unseen bool

	// status is the Application's status; nil if there is none, or if it is being deleted.
	status *appsv1alpha1.ApplicationStatus
}

// NewComponentView is the view of a discovered object, or of the reason why none can be observed.
func NewComponentView(gvk schema.GroupVersionKind, key types.NamespacedName, unseen *condition.Error) ComponentView {
	return ComponentView{
		discovered: true, Name: key.Name, Namespace: key.Namespace, Unseen: unseen,
		Kind: appsv1alpha1.ComponentKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: key.Name},
	}
}
