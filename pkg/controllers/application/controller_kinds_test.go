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
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// crd is the definition of a kind Database in the fixture's own API group.
func (f *fixture) crd() *apiextensionsv1.CustomResourceDefinition {
	group := f.namespace + ".example.org"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "databases." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "databases", Singular: "database", Kind: "Database", ListKind: "DatabaseList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

func (f *fixture) databaseKind() appsv1alpha1.ComponentKind {
	return appsv1alpha1.ComponentKind{Group: f.namespace + ".example.org", Version: "v1", Kind: "Database"}
}

// database creates an object of the kind Database that is a component of an Application, as soon as the kind is served.
func (f *fixture) database(name, application string) *unstructured.Unstructured {
	f.T.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: f.namespace + ".example.org", Version: "v1", Kind: "Database"})
	m := f.member(name, application)
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	u.SetLabels(m.Labels)
	u.SetAnnotations(m.Annotations)
	// A client caches its information about a kind, which may be from a definition that was deleted.
	f.Within("creating "+name, func() error {
		return controllertest.NewClient(f.T, f.lane.workload.Config, scheme()).Create(f.Ctx, u.DeepCopy())
	})
	return u
}

// status gives an object a status.
func (f *fixture) status(u *unstructured.Unstructured, status map[string]any) {
	f.T.Helper()
	f.Within("the status of "+u.GetName(), func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		u.Object["status"] = status
		return f.workload.Status().Update(f.Ctx, u)
	})
}

// says waits until a status has this entry for a component, as "Installed/Health Reason".
func (f *fixture) says(app *appsv1alpha1.Application, component, want string) {
	f.T.Helper()
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := componentOfStatus(s, component); got != want {
			return fmt.Errorf("component %q: want %q, got %q", component, want, got)
		}
		return nil
	})
}

// definitionsWatched waits until definitions and API services are watched. When that begins, everything is resolved
// again.
func (f *fixture) definitionsWatched() {
	f.T.Helper()
	w, _ := f.reconciler.workloads.Get(f.cluster)
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
	f.served()
	state := func(kind kindwatch.Kind) kindwatch.State {
		w, ok := f.reconciler.workloads.Get(f.cluster)
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
	empty := f.application("empty", nil)
	f.has(empty, func(s appsv1alpha1.ApplicationStatus) error {
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
	app := f.application("shop", components(configMaps, "settings"))
	f.configMap("settings", "shop")
	f.says(app, "settings", "True/Healthy ")
	f.definitionsWatched()
}

// A kind that is not served affects only its components; it is observed once it is served, and when it is no longer
// served, its objects are not reported missing.
func TestAKindThatComesAndGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kinds := components(configMaps, "settings")
	kinds["db"] = f.databaseKind()
	app := f.application("shop", kinds)
	f.configMap("settings", "shop")
	f.says(app, "db", "Unknown/Unknown KindNotServed")
	f.says(app, "settings", "True/Healthy ")
	if got := formatCondition(app.Status, appsv1alpha1.ConditionComponentsWatched); got != "False KindNotServed" {
		t.Errorf("got %q", got)
	}

	crd := f.crd()
	f.Create(f.workload, crd)
	f.says(app, "db", "False/Missing NotFound")
	db := f.database("db", "shop")
	f.installed(app, "db", "settings")
	f.owned(db, app, true)
	f.says(app, "db", "True/Unknown NoStatus")
	f.status(db, map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.says(app, "db", "True/Healthy ")

	f.Undefine(f.workload, crd)
	f.says(app, "db", "Unknown/Unknown KindNotServed")
	f.says(app, "settings", "True/Healthy ")
}

// A resolved kind is trusted only while changes of it are watched. Between two Applications that name kinds, nothing is
// watched: then it is resolved again.
func TestAKindThatIsAnotherOneWhenItIsNamedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.linger = time.Millisecond })
	crd := f.crd()
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	f.Create(f.workload, crd)
	kinds := map[string]appsv1alpha1.ComponentKind{"db": f.databaseKind()}
	first := f.application("first", kinds)
	f.has(first, func(s appsv1alpha1.ApplicationStatus) error {
		if got := formatCondition(s, appsv1alpha1.ConditionComponentsWatched); got != "False "+appsv1alpha1.ReasonClusterScoped {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	f.Delete(f.workload, first)
	w, _ := f.reconciler.workloads.Get(f.cluster)
	for _, kind := range []kindwatch.Kind{record.DefinitionKind, record.APIServiceKind} {
		f.Within(kind.String()+" are not watched any more", func() error {
			if got, _ := w.Watcher.State(kind); got != kindwatch.StateUnwatched {
				return fmt.Errorf("got %s", got)
			}
			return nil
		})
	}
	f.Undefine(f.workload, crd)
	f.Create(f.workload, f.crd())
	f.database("db", "second")
	second := f.application("second", kinds)
	f.says(second, "db", "True/Unknown NoStatus")
}

// A kind that may not be listed affects only its components.
func TestAKindThatIsForbidden(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodGet || req.URL.Path != "/api/v1/services" {
			return nil
		}
		return controllertest.JSONAnswer(req, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"no"}`)
	})
	kinds := components(configMaps, "settings")
	kinds["web"] = services
	app := f.application("shop", kinds)
	f.configMap("settings", "shop")
	f.says(app, "web", "Unknown/Unknown KindForbidden")
	f.says(app, "settings", "True/Healthy ")
}

// A group that does not answer affects only its own components.
func TestAGroupThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.RequestTimeout = time.Second })
	kind := f.databaseKind()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	f.traffic.SetAnswer(func(req *http.Request) *http.Response {
		if !strings.HasPrefix(req.URL.Path, "/apis/"+kind.Group) {
			return nil
		}
		select {
		case <-release:
		case <-req.Context().Done():
		}
		return controllertest.JSONAnswer(req, http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503}`)
	})
	kinds := components(configMaps, "settings")
	kinds["db"] = kind
	app := f.application("shop", kinds)
	other := f.application("other", components(configMaps, "other-settings"))
	f.configMap("other-settings", "other")
	f.installed(other, "other-settings")
	f.configMap("settings", "shop")
	f.says(app, "settings", "True/Healthy ")
	f.says(app, "db", "Unknown/Unknown Syncing")
}

// Malformed objects are Unknown, and affect nothing else.
func TestObjectsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.workload, f.crd())
	kinds := components(configMaps, "settings")
	for _, name := range []string{"text", "list", "number"} {
		kinds[name] = f.databaseKind()
	}
	app := f.application("shop", kinds)
	f.configMap("settings", "shop")
	f.status(f.database("text", "shop"), map[string]any{"observedGeneration": "one", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.status(f.database("list", "shop"), map[string]any{"conditions": []any{"Ready", map[string]any{"type": 1, "status": []any{}}}})
	f.status(f.database("number", "shop"), map[string]any{"conditions": 7})
	f.installed(app, "list", "number", "settings", "text")
	f.says(app, "settings", "True/Healthy ")
}

// When another HealthRule applies, its objects are reassessed without having changed.
func TestAHealthRuleCountsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.workload, f.crd())
	app := f.application("shop", map[string]appsv1alpha1.ComponentKind{"db": f.databaseKind()})
	f.status(f.database("db", "shop"), map[string]any{"phase": "Broken"})
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.Health == appsv1alpha1.HealthDegraded || s.ComponentsInstalled != "1/1" {
			return errors.New("want it to be installed, and not known to be broken")
		}
		return nil
	})
	rule := &fleetv1alpha1.HealthRule{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Spec: fleetv1alpha1.HealthRuleSpec{
			Group: f.databaseKind().Group, Kind: "Database", Degraded: `object.status.phase == "Broken"`,
		},
	}
	f.Create(f.hub, rule)
	f.health(app, appsv1alpha1.HealthDegraded)
	if err := f.hub.Delete(f.Ctx, rule); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
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
	outer := f.application("outer", components(self, "inner", "outer"))
	inner := f.application("inner", components(configMaps, "settings"), func(app *appsv1alpha1.Application) {
		app.ObjectMeta = f.member("inner", "outer")
	})
	f.configMap("settings", "inner")
	f.owned(inner, outer, true)
	f.says(outer, "inner", "True/Healthy ")
	f.Edit(f.workload, outer, func() {
		outer.Labels = map[string]string{"app": "outer"}
		outer.Annotations = map[string]string{appsv1alpha1.ApplicationAnnotation: "outer"}
	})
	f.settled()
	f.owned(outer, outer, false)
}

// A rule that changes while no Application names its kind applies to records kept meanwhile.
func TestAHealthRuleForAKindThatLingers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.linger = time.Hour })
	f.Create(f.workload, f.crd())
	rule := &fleetv1alpha1.HealthRule{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Spec:       fleetv1alpha1.HealthRuleSpec{Group: f.databaseKind().Group, Kind: "Database", Degraded: `object.status.phase == "Broken"`},
	}
	f.Create(f.hub, rule)
	t.Cleanup(func() { _ = f.hub.Delete(f.Ctx, rule) })
	kinds := map[string]appsv1alpha1.ComponentKind{"db": f.databaseKind()}
	app := f.application("shop", kinds)
	// An object with a controller is not owned, so that it is not written when the spec no longer names its kind.
	owner := f.configMap("owner", "absent")
	db := f.database("db", "shop")
	f.status(db, map[string]any{"phase": "Gone"})
	f.Edit(f.workload, db, func() {
		db.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true)}})
	})
	f.owned(db, app, false)
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.ComponentsInstalled != "1/1" || s.Health == appsv1alpha1.HealthDegraded {
			return errors.New("want it to be there, and not to be degraded")
		}
		return nil
	})
	f.settled()
	w, _ := f.reconciler.workloads.Get(f.cluster)
	f.Edit(f.workload, app, func() { app.Spec.Components = components(configMaps, "settings") })
	f.Within("no Application names the kind", func() error {
		if used := watchedAs(w, schema.GroupKind{Group: f.databaseKind().Group, Kind: "Database"}); len(used) > 0 {
			return fmt.Errorf("%v", used)
		}
		return nil
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"degraded":"object.status.phase == \"Gone\""}}`))
	if err := f.hub.Patch(f.Ctx, rule, patch); err != nil {
		t.Fatal(err)
	}
	f.Within("the rule is followed", func() error {
		if err := f.hub.Get(f.Ctx, client.ObjectKeyFromObject(rule), rule); err != nil {
			return err
		}
		if rule.Status.ObservedGeneration != rule.Generation {
			return errors.New("it is not yet")
		}
		return nil
	})
	f.Edit(f.workload, app, func() { app.Spec.Components = kinds })
	f.health(app, appsv1alpha1.HealthDegraded)
}

// A kind that can no longer be read does not keep its old status: here, because the conversion webhook of its
// definition is gone.
func TestAKindThatCannotBeReadAnyMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.staleAfter = time.Second })
	crd := f.crd()
	stored := *crd.Spec.Versions[0].DeepCopy()
	stored.Name, crd.Spec.Versions[0].Storage = "v0", false
	crd.Spec.Versions = append(crd.Spec.Versions, stored)
	f.Create(f.workload, crd)
	kinds := components(configMaps, "settings")
	kinds["db"] = f.databaseKind()
	app := f.application("shop", kinds)
	f.configMap("settings", "shop")
	f.status(f.database("db", "shop"), map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	f.says(app, "db", "True/Healthy ")

	f.Edit(f.workload, crd, func() {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")}, ConversionReviewVersions: []string{"v1"},
			},
		}
	})
	f.says(app, "db", "Unknown/Unknown KindStale")
	f.says(app, "settings", "True/Healthy ")
	if got := formatCondition(app.Status, appsv1alpha1.ConditionComponentsWatched); got != "False KindStale" {
		t.Errorf("got %q", got)
	}
	f.Edit(f.workload, crd, func() {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	})
	f.says(app, "db", "True/Healthy ")
}
