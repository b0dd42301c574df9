// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/health"
)

// clusterReducer is the reducer of a separate cluster, with its wanted marks.
type clusterReducer struct {
	reducer record.Reducer
	wanted  *record.WantedMarks
}

func reducerOfACluster() clusterReducer {
	assessor, wanted := health.New(), record.NewWantedMarks(clock.RealClock{})
	return clusterReducer{record.NewReducer(func() health.Assessor { return assessor }, &record.Texts{}, record.NewPacker(), wanted), wanted}
}

// discovering makes an Application discover the objects that are a part of it.
func discovering(r clusterReducer, app *appsv1alpha1.Application) {
	app.Spec.Discover = &appsv1alpha1.Discovery{Sources: []appsv1alpha1.DiscoverySource{{PartOf: app.Name}}, Kinds: applicationtest.DiscoveredConfigMaps}
	r.wanted.Want(types.NamespacedName{Namespace: app.Namespace, Name: app.Name}, record.MarksWanted(app, record.Visibility{Own: app.Namespace}))
}

// viewOfKept is the view of a component that is installed.
func viewOfKept(name string, found *record.Component, discovered bool) appstatus.ComponentView {
	if discovered {
		view := appstatus.NewComponentView(applicationtest.ConfigMapKind.GroupVersionKind, types.NamespacedName{Namespace: "default", Name: name}, nil)
		view.Found, view.Installed = found, true
		return view
	}
	return appstatus.ComponentView{Name: name, Kind: applicationtest.ConfigMaps, Found: found, Installed: true}
}

func toFields(app *appsv1alpha1.Application) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	return &unstructured.Unstructured{Object: fields}, err
}

// The records of an Application are measured, because there are thousands of Applications: this shows another field in
// a record, or common status text that is missing from the vocabulary.
func TestAnApplicationTakesNoMoreThanItDid(t *testing.T) {
	kept := keptRecords(t, reducerOfACluster(), 7, 3, false)
	app, ok := kept[len(kept)-1].(*record.Application)
	if !ok {
		t.Fatalf("want the record of an Application that is not discovered to have no marks, got %T", kept[len(kept)-1])
	}
	// A fixed amount, and the text to which it is packed.
	const most, size = 48 + 176, 32
	if takes := app.Size() - record.GetComponent(app).Size(); takes > most {
		t.Errorf("a healthy Application of three components takes %d bytes, and took %d: add what is new to vocabulary.json", takes, most)
	}
	if takes := unsafe.Sizeof(*app); takes > size {
		t.Errorf("the record of an Application takes %d bytes, and took %d, as many as Go reserves at once", takes, size)
	}
}
