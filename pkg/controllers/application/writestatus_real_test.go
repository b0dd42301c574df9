// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// A status written late must not describe the next Application of the same name.
func TestStatusOfAnApplicationIsNotWrittenToItsSuccessor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(configMaps, "settings"))
	f.installed(app)
	f.settled()
	w, _ := f.reconciler.workloads.Get(f.cluster)
	before := w.Application(client.ObjectKeyFromObject(app))
	late := *before.Status.DeepCopy()
	late.ComponentsInstalled = "7/7"
	patch, err := statusPatch(before, late)
	if err != nil {
		t.Fatal(err)
	}

	f.Delete(f.workload, app)
	successor := f.application("shop", components(configMaps, "settings"))
	f.installed(successor)
	f.settled()
	err = f.workload.Status().Patch(f.Ctx, successor.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if !apierrors.IsConflict(err) {
		t.Errorf("The status of another Application must be refused as a conflict. Got %v.", err)
	}
	f.installed(successor)
}

// Concurrent changes of an Application are not overwritten by a status write, and the status is still written: a change
// outside the cached fields triggers no event.
func TestStatusIsWrittenAfterAConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(configMaps, "settings"))
	f.installed(app)
	f.settled()
	direct, key := f.workload, client.ObjectKeyFromObject(app)
	var once sync.Once
	f.traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/applications/shop/status") {
			once.Do(func() {
				same := &appsv1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
				if err := direct.Patch(f.Ctx, same, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))); err != nil {
					t.Errorf("cannot change the Application: %v", err)
				}
			})
		}
		return nil
	})
	f.configMap("settings", "shop")
	f.installed(app, "settings")
}
