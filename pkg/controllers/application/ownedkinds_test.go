// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// service creates a Service that is a component of an Application.
func (f *fixture) service(name, application string) *corev1.Service {
	f.T.Helper()
	svc := &corev1.Service{ObjectMeta: f.MemberMeta(name, application), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	f.Create(f.Workload, svc)
	return svc
}

// relist has a kind listed again.
func (f *fixture) relist(gk schema.GroupKind) {
	f.T.Helper()
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	w.Watcher.Relist(func(kind schema.GroupKind) bool { return kind == gk })
}

// watchedAs are the forms in which a kind is watched for an Application.
func watchedAs(w *workload.Cluster, gk schema.GroupKind) []kindwatch.Kind {
	return w.KindsSelected([]health.Selector{{Group: gk.Group, Kind: gk.Kind}})
}

// inState waits until a kind is in a state.
func (f *fixture) inState(gk schema.GroupKind, want kindwatch.State) {
	f.T.Helper()
	f.Within(gk.String()+" is "+string(want), func() error {
		w, engaged := f.reconciler.workloads.Get(f.Cluster)
		if !engaged {
			return errors.New("the cluster is not engaged yet")
		}
		for _, kind := range watchedAs(w, gk) {
			if got, _ := w.Watcher.State(kind); got == want {
				return nil
			}
		}
		return fmt.Errorf("want %s, it is watched as %v", want, watchedAs(w, gk))
	})
}

// Objects of a kind removed from the spec while Masthead may not read it are released once it may, even if the manager
// was replaced meanwhile. Otherwise, deleting the Application would delete them.
func TestGarbageCollectionLetsGoOfAKindThatIsForbidden(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["web"] = applicationtest.Services
	app := f.CreateApplication("shop", kinds)
	f.CreateConfigMap("settings", "shop")
	svc := f.service("web", "shop")
	f.WaitForInstalled(app, "settings", "web")
	f.WaitForOwned(svc, app, true)
	f.WaitForOwnedKinds(app, "ConfigMap", "Service")

	gk := schema.GroupKind{Kind: "Service"}
	f.AnswerFor("/api/v1/services", http.StatusForbidden, `"code":403,"reason":"Forbidden","message":"cannot list resource"`)
	f.relist(gk)
	f.inState(gk, kindwatch.StateForbidden)
	f.Edit(f.Workload, app, func() { delete(app.Spec.Components, "web") })
	f.WaitForInstalled(app, "settings")
	f.WaitForOwnedKinds(app, "ConfigMap", "Service")
	f.restart()
	f.inState(gk, kindwatch.StateForbidden)

	f.Traffic.SetAnswer(nil)
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	w.Watcher.Retry(schema.GroupResource{Resource: "services"})
	f.WaitForOwned(svc, app, false)
	f.WaitForOwnedKinds(app, "ConfigMap")
}

// A status lists 64 components, and all kinds of which objects are owned.
func TestGarbageCollectionLetsGoOfAKindOfAnApplicationWithManyComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kinds := map[string]appsv1alpha1.ComponentKind{"web": applicationtest.Services}
	for i := range appsv1alpha1.MaxStatusEntries + 1 {
		kinds[fmt.Sprintf("missing-%d", i)] = applicationtest.ConfigMaps
	}
	app := f.CreateApplication("shop", kinds)
	svc := f.service("web", "shop")
	f.WaitForOwned(svc, app, true)
	f.WaitForInstalled(app, "web")
	f.stop()
	f.Edit(f.Workload, app, func() { delete(app.Spec.Components, "web") })
	f.start()
	f.WaitForOwned(svc, app, false)
	f.WaitForOwnedKinds(app)
}

// Adopted objects are known even if the manager ended before writing a status.
func TestGarbageCollectionLetsGoOfAKindThatNoStatusSpokeOf(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.URL.Path != "/api/v1/secrets" {
			return nil
		}
		// A kind that is not read keeps the status waiting.
		<-req.Context().Done()
		return controllertest.JSONAnswer(req, http.StatusGatewayTimeout, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":504,"reason":"Timeout"}`)
	})
	kinds := map[string]appsv1alpha1.ComponentKind{"web": applicationtest.Services, "secret": {Version: "v1", Kind: "Secret"}}
	svc := f.service("web", "shop")
	app := f.CreateApplication("shop", kinds)
	f.WaitForOwned(svc, app, true)
	f.stop()
	f.Traffic.SetAnswer(nil)
	f.Edit(f.Workload, app, func() { app.Spec.Components = applicationtest.Components(applicationtest.ConfigMaps, "settings") })
	f.start()
	f.WaitForOwned(svc, app, false)
	f.WaitForOwnedKinds(app)
}

func TestFormerKinds(t *testing.T) {
	gvk := func(group, version, kind string) metav1.GroupVersionKind {
		return metav1.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	listed := func(kind string, installed corev1.ConditionStatus) appsv1alpha1.ComponentStatus {
		return appsv1alpha1.ComponentStatus{Name: kind, Version: "v1", Kind: kind, Installed: installed}
	}
	for _, tc := range []struct {
		name, reason string
		generation   int64
		status       appsv1alpha1.ApplicationStatus
		want         []string
	}{
		{name: "nothing", reason: "An Application that owns nothing has no former kinds."},
		{
			name: "named", reason: "What the spec names is no former kind.",
			status: appsv1alpha1.ApplicationStatus{OwnedKinds: []metav1.GroupVersionKind{gvk("", "v1", "ConfigMap")}},
		},
		{
			name: "owned", reason: "What is listed and not named is to be released, regardless of the generation.",
			status: appsv1alpha1.ApplicationStatus{OwnedKinds: []metav1.GroupVersionKind{gvk("", "v1", "ConfigMap"), gvk("", "v1", "Service")}},
			want:   []string{"/v1, Kind=Service"},
		},
		{
			name: "earlier version", reason: "A status of an earlier version lists components.", generation: 2,
			status: appsv1alpha1.ApplicationStatus{
				ObservedGeneration: 1,
				Components:         []appsv1alpha1.ComponentStatus{listed("Service", corev1.ConditionTrue), listed("Sercive", corev1.ConditionUnknown)},
			},
			want: []string{"/v1, Kind=Service"},
		},
		{
			name: "nonsense", reason: "Anybody who may write the status can write this.",
			status: appsv1alpha1.ApplicationStatus{OwnedKinds: []metav1.GroupVersionKind{{}, gvk("a", "", "B"), gvk("a", "v1", "")}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			app := selecting(func(app *appsv1alpha1.Application) { app.Generation, app.Status = tc.generation, tc.status })
			var got []string
			for k := range formerKinds(app) {
				got = append(got, k.String())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s Want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
