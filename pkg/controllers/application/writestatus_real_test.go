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
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
)

// A status written late must not describe the next Application of the same name.
func TestStatusOfAnApplicationIsNotWrittenToItsSuccessor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForInstalled(app)
	f.WaitForIdle()
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	before := w.Application(client.ObjectKeyFromObject(app))
	late := *before.Status.DeepCopy()
	late.ComponentsInstalled = "7/7"
	patch, err := statusPatch(before, late)
	if err != nil {
		t.Fatal(err)
	}

	f.Delete(f.Workload, app)
	successor := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForInstalled(successor)
	f.WaitForIdle()
	err = f.Workload.Status().Patch(f.Ctx, successor.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if !apierrors.IsConflict(err) {
		t.Errorf("The status of another Application must be refused as a conflict. Got %v.", err)
	}
	f.WaitForInstalled(successor)
}

// Concurrent changes of an Application are not overwritten by a status write, and the status is still written: a change
// outside the cached fields triggers no event.
func TestStatusIsWrittenAfterAConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForInstalled(app)
	f.WaitForIdle()
	direct, key := f.Workload, client.ObjectKeyFromObject(app)
	var once sync.Once
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
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
	f.CreateConfigMap("settings", "shop")
	f.WaitForInstalled(app, "settings")
}
