// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/health"
)

// reducerOfACluster is one of a cluster of its own.
func reducerOfACluster() reducer {
	assessor := health.New()
	return reducer{assessor: func() health.Assessor { return assessor }, texts: &texts{}, packer: newPacker(), wanted: newWantedMarks(clock.RealClock{})}
}

// discovering has an Application discover what is a part of it.
func discovering(r reducer, app *appsv1alpha1.Application) reducer {
	app.Spec.Discover = &appsv1alpha1.Discovery{Sources: []appsv1alpha1.DiscoverySource{{PartOf: app.Name}}, Kinds: discoveredConfigMaps}
	r.wanted.want(types.NamespacedName{Namespace: app.Namespace, Name: app.Name}, marksWanted(app, sight{own: app.Namespace}))
	return r
}

// viewOfKept is the view of a component that is installed.
func viewOfKept(name string, found *record, discovered bool) componentView {
	if discovered {
		view := viewOf(configMapKind.GroupVersionKind, types.NamespacedName{Namespace: "default", Name: name}, nil)
		view.found, view.installed = found, true
		return view
	}
	return componentView{name: name, kind: configMaps, found: found, installed: true}
}

func toFields(app *appsv1alpha1.Application) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	return &unstructured.Unstructured{Object: fields}, err
}
