// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// database creates an object of the kind Database that is a component of an Application, as soon as the kind is served.
func (f *fixture) database(name, application string) *unstructured.Unstructured {
	f.T.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: f.Namespace + ".example.org", Version: "v1", Kind: "Database"})
	m := f.MemberMeta(name, application)
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	u.SetLabels(m.Labels)
	u.SetAnnotations(m.Annotations)
	// A client caches its information about a kind, which may be from a definition that was deleted.
	f.Within("creating "+name, func() error {
		return controllertest.NewClient(f.T, f.lane.workload.Config, controllertest.Scheme()).Create(f.Ctx, u.DeepCopy())
	})
	return u
}

// definitionsWatched waits until definitions and API services are watched. When that begins, everything is resolved
// again.
func (f *fixture) definitionsWatched() {
	f.T.Helper()
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	for _, kind := range []kindwatch.Kind{record.DefinitionKind, record.APIServiceKind} {
		f.Within(kind.String()+" are watched", func() error {
			if got, _ := w.Watcher.State(kind); got != kindwatch.StateSynced {
				return fmt.Errorf("got %s", got)
			}
			return nil
		})
	}
}

// TestAClusterWithoutApplications: the definitions and API services of a cluster, which can be many, are not listed
// until an Application names a kind; its mere existence is not enough.
func TestAClusterWithoutApplications(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	state := func(kind kindwatch.Kind) kindwatch.State {
		w, ok := f.reconciler.workloads.Get(f.Cluster)
		if !ok {
			return "of a cluster that is not engaged"
		}
		state, _ := w.Watcher.State(kind)
		return state
	}
	f.Within("Applications are watched", func() error {
		if got := state(record.ApplicationKind); got != kindwatch.StateSynced {
			return fmt.Errorf("got %s", got)
		}
		return nil
	})
	empty := f.CreateApplication("empty", nil)
	f.WaitForStatus(empty, func(s appsv1alpha1.ApplicationStatus) error {
		if s.ObservedGeneration != empty.Generation {
			return errors.New("it has not been looked at")
		}
		return nil
	})
	for _, kind := range []kindwatch.Kind{record.DefinitionKind, record.APIServiceKind} {
		if got := state(kind); got != kindwatch.StateUnwatched {
			t.Errorf("want %s not to be watched, it is %s", kind, got)
		}
	}
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.CreateConfigMap("settings", "shop")
	f.WaitForComponent(app, "settings", "True/Healthy ")
	f.definitionsWatched()
}

// A kind that is not served affects only its components; it is observed once it is served, and when it is no longer
// served, its objects are not reported missing.
func TestAKindThatComesAndGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["db"] = f.DatabaseKind()
	app := f.CreateApplication("shop", kinds)
	f.CreateConfigMap("settings", "shop")
	f.WaitForComponent(app, "db", "Unknown/Unknown KindNotServed")
	f.WaitForComponent(app, "settings", "True/Healthy ")
	if got := applicationtest.FormatCondition(app.Status, appsv1alpha1.ConditionComponentsWatched); got != "False KindNotServed" {
		t.Errorf("got %q", got)
	}

	crd := f.DatabaseCRD()
	f.Create(f.Workload, crd)
	f.WaitForComponent(app, "db", "False/Missing NotFound")
	db := f.database("db", "shop")
	f.WaitForInstalled(app, "db", "settings")
	f.WaitForOwned(db, app, true)
	f.WaitForComponent(app, "db", "True/Unknown NoStatus")
	f.SetStatus(db, map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.WaitForComponent(app, "db", "True/Healthy ")

	f.Undefine(f.Workload, crd)
	f.WaitForComponent(app, "db", "Unknown/Unknown KindNotServed")
	f.WaitForComponent(app, "settings", "True/Healthy ")
}

// A resolved kind is trusted only while changes of it are watched. Between two Applications that name kinds, nothing is
// watched: then it is resolved again.
func TestAKindThatIsAnotherOneWhenItIsNamedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.linger = time.Millisecond })
	crd := f.DatabaseCRD()
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	f.Create(f.Workload, crd)
	kinds := map[string]appsv1alpha1.ComponentKind{"db": f.DatabaseKind()}
	first := f.CreateApplication("first", kinds)
	f.WaitForStatus(first, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionComponentsWatched); got != "False "+appsv1alpha1.ReasonClusterScoped {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	f.Delete(f.Workload, first)
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	for _, kind := range []kindwatch.Kind{record.DefinitionKind, record.APIServiceKind} {
		f.Within(kind.String()+" are not watched any more", func() error {
			if got, _ := w.Watcher.State(kind); got != kindwatch.StateUnwatched {
				return fmt.Errorf("got %s", got)
			}
			return nil
		})
	}
	f.Undefine(f.Workload, crd)
	f.Create(f.Workload, f.DatabaseCRD())
	f.database("db", "second")
	second := f.CreateApplication("second", kinds)
	f.WaitForComponent(second, "db", "True/Unknown NoStatus")
}

// A kind that may not be listed affects only its components.
func TestAKindThatIsForbidden(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodGet || req.URL.Path != "/api/v1/services" {
			return nil
		}
		return controllertest.JSONAnswer(req, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"no"}`)
	})
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["web"] = applicationtest.Services
	app := f.CreateApplication("shop", kinds)
	f.CreateConfigMap("settings", "shop")
	f.WaitForComponent(app, "web", "Unknown/Unknown KindForbidden")
	f.WaitForComponent(app, "settings", "True/Healthy ")
}

// A group that does not answer affects only its own components.
func TestAGroupThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.RequestTimeout = time.Second })
	kind := f.DatabaseKind()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if !strings.HasPrefix(req.URL.Path, "/apis/"+kind.Group) {
			return nil
		}
		select {
		case <-release:
		case <-req.Context().Done():
		}
		return controllertest.JSONAnswer(req, http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503}`)
	})
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["db"] = kind
	app := f.CreateApplication("shop", kinds)
	other := f.CreateApplication("other", applicationtest.Components(applicationtest.ConfigMaps, "other-settings"))
	f.CreateConfigMap("other-settings", "other")
	f.WaitForInstalled(other, "other-settings")
	f.CreateConfigMap("settings", "shop")
	f.WaitForComponent(app, "settings", "True/Healthy ")
	f.WaitForComponent(app, "db", "Unknown/Unknown Syncing")
}

// Malformed objects are Unknown, and affect nothing else.
func TestObjectsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.Workload, f.DatabaseCRD())
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	for _, name := range []string{"text", "list", "number"} {
		kinds[name] = f.DatabaseKind()
	}
	app := f.CreateApplication("shop", kinds)
	f.CreateConfigMap("settings", "shop")
	f.SetStatus(f.database("text", "shop"), map[string]any{"observedGeneration": "one", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.SetStatus(f.database("list", "shop"), map[string]any{"conditions": []any{"Ready", map[string]any{"type": 1, "status": []any{}}}})
	f.SetStatus(f.database("number", "shop"), map[string]any{"conditions": 7})
	f.WaitForInstalled(app, "list", "number", "settings", "text")
	f.WaitForComponent(app, "settings", "True/Healthy ")
}

// When another HealthRule applies, its objects are reassessed without having changed.
func TestAHealthRuleCountsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.Workload, f.DatabaseCRD())
	app := f.CreateApplication("shop", map[string]appsv1alpha1.ComponentKind{"db": f.DatabaseKind()})
	f.SetStatus(f.database("db", "shop"), map[string]any{"phase": "Broken"})
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.Health == appsv1alpha1.HealthDegraded || s.ComponentsInstalled != "1/1" {
			return errors.New("want it to be installed, and not known to be broken")
		}
		return nil
	})
	rule := &fleetv1alpha1.HealthRule{
		ObjectMeta: metav1.ObjectMeta{Name: f.Namespace},
		Spec: fleetv1alpha1.HealthRuleSpec{
			Group: f.DatabaseKind().Group, Kind: "Database", Degraded: `object.status.phase == "Broken"`,
		},
	}
	f.Create(f.Hub, rule)
	f.WaitForHealth(app, appsv1alpha1.HealthDegraded)
	if err := f.Hub.Delete(f.Ctx, rule); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.Health == appsv1alpha1.HealthDegraded {
			return errors.New("want the rule not to count any more")
		}
		return nil
	})
}

// An Application can be a component of another one.
func TestAnApplicationOfApplications(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	self := appsv1alpha1.ComponentKind{Group: "apps.masthead.dev", Version: "v1alpha1", Kind: "Application"}
	outer := f.CreateApplication("outer", applicationtest.Components(self, "inner", "outer"))
	inner := f.CreateApplication("inner", applicationtest.Components(applicationtest.ConfigMaps, "settings"), func(app *appsv1alpha1.Application) {
		app.ObjectMeta = f.MemberMeta("inner", "outer")
	})
	f.CreateConfigMap("settings", "inner")
	f.WaitForOwned(inner, outer, true)
	f.WaitForComponent(outer, "inner", "True/Healthy ")
	f.Edit(f.Workload, outer, func() {
		outer.Labels = map[string]string{"app": "outer"}
		outer.Annotations = map[string]string{appsv1alpha1.ApplicationAnnotation: "outer"}
	})
	f.WaitForIdle()
	f.WaitForOwned(outer, outer, false)
}

// A rule that changes while no Application names its kind applies to records kept meanwhile.
func TestAHealthRuleForAKindThatLingers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.linger = time.Hour })
	f.Create(f.Workload, f.DatabaseCRD())
	rule := &fleetv1alpha1.HealthRule{
		ObjectMeta: metav1.ObjectMeta{Name: f.Namespace},
		Spec:       fleetv1alpha1.HealthRuleSpec{Group: f.DatabaseKind().Group, Kind: "Database", Degraded: `object.status.phase == "Broken"`},
	}
	f.Create(f.Hub, rule)
	t.Cleanup(func() { _ = f.Hub.Delete(f.Ctx, rule) })
	kinds := map[string]appsv1alpha1.ComponentKind{"db": f.DatabaseKind()}
	app := f.CreateApplication("shop", kinds)
	// An object with a controller is not owned, so that it is not written when the spec no longer names its kind.
	owner := f.CreateConfigMap("owner", "absent")
	db := f.database("db", "shop")
	f.SetStatus(db, map[string]any{"phase": "Gone"})
	f.Edit(f.Workload, db, func() {
		db.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true)}})
	})
	f.WaitForOwned(db, app, false)
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.ComponentsInstalled != "1/1" || s.Health == appsv1alpha1.HealthDegraded {
			return errors.New("want it to be there, and not to be degraded")
		}
		return nil
	})
	f.WaitForIdle()
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	f.Edit(f.Workload, app, func() { app.Spec.Components = applicationtest.Components(applicationtest.ConfigMaps, "settings") })
	f.Within("no Application names the kind", func() error {
		if used := watchedAs(w, schema.GroupKind{Group: f.DatabaseKind().Group, Kind: "Database"}); len(used) > 0 {
			return fmt.Errorf("%v", used)
		}
		return nil
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"degraded":"object.status.phase == \"Gone\""}}`))
	if err := f.Hub.Patch(f.Ctx, rule, patch); err != nil {
		t.Fatal(err)
	}
	f.Within("the rule is followed", func() error {
		if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(rule), rule); err != nil {
			return err
		}
		if rule.Status.ObservedGeneration != rule.Generation {
			return errors.New("it is not yet")
		}
		return nil
	})
	f.Edit(f.Workload, app, func() { app.Spec.Components = kinds })
	f.WaitForHealth(app, appsv1alpha1.HealthDegraded)
}

// A kind that can no longer be read does not keep its old status: here, because the conversion webhook of its
// definition is gone.
func TestAKindThatCannotBeReadAnyMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.staleAfter = time.Second })
	crd := f.DatabaseCRD()
	stored := *crd.Spec.Versions[0].DeepCopy()
	stored.Name, crd.Spec.Versions[0].Storage = "v0", false
	crd.Spec.Versions = append(crd.Spec.Versions, stored)
	f.Create(f.Workload, crd)
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["db"] = f.DatabaseKind()
	app := f.CreateApplication("shop", kinds)
	f.CreateConfigMap("settings", "shop")
	f.SetStatus(f.database("db", "shop"), map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.WaitForComponent(app, "db", "True/Healthy ")

	f.Edit(f.Workload, crd, func() {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")}, ConversionReviewVersions: []string{"v1"},
			},
		}
	})
	f.WaitForComponent(app, "db", "Unknown/Unknown KindStale")
	f.WaitForComponent(app, "settings", "True/Healthy ")
	if got := applicationtest.FormatCondition(app.Status, appsv1alpha1.ConditionComponentsWatched); got != "False KindStale" {
		t.Errorf("got %q", got)
	}
	f.Edit(f.Workload, crd, func() {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	})
	f.WaitForComponent(app, "db", "True/Healthy ")
}
