// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/managed"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

const (
	xrdCRD         = resourceXRD + "." + crossplaneGroup
	compositionCRD = resourceComposition + "." + crossplaneGroup
)

// releasing calls a function that waits until definitions are gone; see testenv.ReleaseDefinitions.
func (f *fixture) releasing(do func()) {
	f.T.Helper()
	ctx, cancel := context.WithCancel(f.Ctx)
	admin, done := f.asMasthead(), make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := testenv.ReleaseDefinitions(ctx, admin); err != nil && ctx.Err() == nil {
				f.T.Error(err)
			}
		}, time.Second)
	}()
	defer func() {
		cancel()
		<-done
	}()
	do()
}

// asMasthead is a client whose writes the policy allows: they stand for what could happen while there was no policy.
func (f *fixture) asMasthead() client.Client {
	f.T.Helper()
	cfg := rest.CopyConfig(f.lane.workload)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: mastheadUser, Groups: []string{"system:masters"}}
	return controllertest.NewClient(f.T, cfg, scheme())
}

func (f *fixture) event(reason string) {
	f.T.Helper()
	f.Within("an event on the enrolled object tells "+reason, func() error {
		l := &eventsv1.EventList{}
		if err := f.hub.List(f.Ctx, l); err != nil {
			return err
		}
		for _, e := range l.Items {
			if e.Reason == reason && e.Regarding.Name == f.class.Name {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

// sameContent checks that a copy has the content of the hub's object, except for how versions are converted.
func sameContent(hub *unstructured.Unstructured) func(*unstructured.Unstructured) error {
	return func(got *unstructured.Unstructured) error {
		want := hub.DeepCopy()
		unstructured.RemoveNestedField(want.Object, "spec", "conversion")
		for _, part := range []string{"spec", "status"} {
			if diff := cmp.Diff(want.Object[part], got.Object[part]); diff != "" {
				return fmt.Errorf("%s (-want +got):\n%s", part, diff)
			}
		}
		return nil
	}
}

func TestSynchronizationPullsDefinitionsAndCompositions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	xrd, composition := f.xrd("mysqlinstances"), f.composition("aws", "mysqlinstances")
	other := prepareOn(t, f.lane)
	foreignXRD, foreignComposition := other.xrd("mysqlinstances"), other.composition("aws", "mysqlinstances")

	got := f.copy(xrd, sameContent(xrd))
	want := owner.Stamp(map[string]string{"tier": "gold"})
	if diff := cmp.Diff(want, got.GetLabels()); diff != "" {
		t.Errorf("want the user's labels and ours (-want +got):\n%s", diff)
	}
	if len(got.GetAnnotations()) != 1 || len(got.GetOwnerReferences()) != 0 || len(got.GetFinalizers()) != 0 {
		t.Errorf("want nothing else of the hub's metadata, got %v", got.Object["metadata"])
	}
	copied := f.copy(composition, sameContent(composition))
	crd, err := f.crd(f.workload, xrdCRD)
	if err != nil || crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter || crd.Spec.Versions[0].Subresources.Status != nil {
		t.Errorf("want a definition that works without the hub, got %v (%v)", crd.Spec.Conversion, err)
	}
	f.reported(xrdCRD, "Served")
	f.gaugeIs(1, "masthead_discovery_objects", string(f.cluster), xrdCRD)
	f.gaugeIs(1, "masthead_discovery_served", string(f.cluster), compositionCRD)

	t.Log("a change in the hub follows")
	f.Edit(f.hub, composition, func() {
		composition.SetLabels(map[string]string{"provider": "gcp"})
		_ = unstructured.SetNestedField(composition.Object, "mine", "spec", "writeConnectionSecretsToNamespace")
	})
	f.copy(composition, func(got *unstructured.Unstructured) error {
		if got.GetLabels()["provider"] != "gcp" {
			return fmt.Errorf("its labels are %v", got.GetLabels())
		}
		return sameContent(composition)(got)
	})
	t.Log("what tools know their objects by stays in the hub")
	f.Edit(f.hub, composition, func() {
		composition.SetLabels(map[string]string{
			"provider": "azure", "app.kubernetes.io/instance": "platform", "kustomize.toolkit.fluxcd.io/name": "platform", "deploy.acmeco.org/release": "platform",
		})
	})
	labels := func(want map[string]string) func(*unstructured.Unstructured) error {
		return func(got *unstructured.Unstructured) error {
			if diff := cmp.Diff(owner.Stamp(want), got.GetLabels()); diff != "" {
				return fmt.Errorf("its labels are not as wanted (-want +got):\n%s", diff)
			}
			return nil
		}
	}
	f.copy(composition, labels(map[string]string{
		"provider": "azure", "deploy.acmeco.org/release": "platform",
	}))
	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.ExcludedMetadata = []string{"acmeco.org/*"} })
	f.copy(composition, labels(map[string]string{"provider": "azure"}))
	f.Edit(f.hub, composition, func() { composition.SetLabels(nil) })
	f.copy(composition, func(got *unstructured.Unstructured) error {
		if len(got.GetLabels()) != 2 {
			return fmt.Errorf("its labels are %v", got.GetLabels())
		}
		return nil
	})

	t.Log("drift is put back, and never reaches the hub")
	version := func() string {
		if err := f.hub.Get(f.Ctx, client.ObjectKeyFromObject(composition), composition); err != nil {
			t.Fatal(err)
		}
		return composition.GetResourceVersion()
	}
	before := version()
	masthead := f.asMasthead()
	f.Edit(masthead, copied, func() {
		copied.SetLabels(map[string]string{fleetv1alpha1.ManagedByLabel: managed.LabelValue, "added": "label"})
		_ = unstructured.SetNestedField(copied.Object, "theirs", "spec", "writeConnectionSecretsToNamespace")
	})
	f.copy(composition, func(got *unstructured.Unstructured) error {
		if len(got.GetLabels()) != 2 {
			return fmt.Errorf("its labels are %v", got.GetLabels())
		}
		return sameContent(composition)(got)
	})
	f.Delete(masthead, copied)
	f.copy(composition, sameContent(composition))
	edited, err := f.crd(f.workload, compositionCRD)
	if err != nil {
		t.Fatal(err)
	}
	f.Edit(masthead, edited, func() { edited.Spec.Names.ShortNames = []string{"hijacked"} })
	f.Within("the definition is put back", func() error {
		got, err := f.crd(f.workload, compositionCRD)
		if err == nil && slices.Contains(got.Spec.Names.ShortNames, "hijacked") {
			err = errors.New("it is not")
		}
		return err
	})
	old := f.copy(composition, nil)
	f.Delete(masthead, edited)
	f.copy(composition, func(got *unstructured.Unstructured) error {
		// The API server deletes the copies before it removes the definition.
		if got.GetUID() == old.GetUID() {
			return errors.New("it is the one from before the definition went")
		}
		return sameContent(composition)(got)
	})
	if after := version(); after != before {
		t.Errorf("want the hub's object untouched, its version went from %s to %s", before, after)
	}

	t.Log("no request is sent when nothing happens, and nothing is written after a restart")
	f.settled()
	requests := f.traffic.Count()
	f.settled()
	if n := f.traffic.Count() - requests; n != 0 {
		t.Errorf("want no requests at rest, got %d: %q", n, f.traffic.Last(n))
	}
	written := f.traffic.Writes()
	f.restart()
	f.gaugeIs(1, "masthead_discovery_objects", string(f.cluster), compositionCRD)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.cluster))
	f.settled()
	// One request asks for Masthead's username.
	if n := f.traffic.Writes() - written; n != 1 {
		t.Errorf("want nothing written after a restart, got %d requests: %q", n-1, f.traffic.Last(20))
	}

	t.Log("what is not offered was never there")
	for _, u := range []*unstructured.Unstructured{foreignXRD, foreignComposition} {
		f.gone(u)
	}

	t.Log("what goes from the hub, or is not offered any more, goes")
	f.Delete(f.hub, composition)
	f.gone(composition)
	f.copy(xrd, nil)
	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.APIGroups = []string{other.group} })
	f.gone(xrd)
	f.copy(foreignXRD, nil)
	f.copy(foreignComposition, nil)
}

func TestDiscoveryModes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	xrd, composition := f.xrd("mysqlinstances"), f.composition("aws", "mysqlinstances")
	f.copy(xrd, nil)
	f.copy(composition, nil)
	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeDefinitionsOnly })
	f.gone(composition)
	f.copy(xrd, nil)
	f.reported(compositionCRD, "")
	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeNone })
	f.gone(xrd)
	f.gaugeIs(-1, "masthead_discovery_served", string(f.cluster), xrdCRD)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.cluster))
	f.settled()
	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeFull })
	f.copy(xrd, nil)
	f.copy(composition, nil)
}

// A hub's object that was deleted and created again unnoticed can differ in fields that cannot be changed.
func TestObjectRecreatedInTheHub(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	composition := f.composition("aws", "mysqlinstances")
	f.copy(composition, nil)
	f.stop()
	f.Delete(f.hub, composition)
	composition = f.composition("aws", "postgresinstances")
	f.registry = prometheus.NewRegistry()
	f.start()
	f.copy(composition, sameContent(composition))
}

func TestOwnCrossplaneIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	hub, err := f.crd(f.hub, xrdCRD)
	if err != nil {
		t.Fatal(err)
	}
	own := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: xrdCRD}, Spec: hub.Spec}
	f.Create(f.workload, own)
	t.Cleanup(func() { f.Delete(f.workload, own) })
	f.start()
	xrd, composition := f.xrd("mysqlinstances"), f.composition("aws", "mysqlinstances")
	f.reported(xrdCRD, fleetv1alpha1.ReasonOwnCrossplane)
	f.event(fleetv1alpha1.ReasonOwnCrossplane)
	f.gaugeIs(0, "masthead_discovery_served", string(f.cluster), xrdCRD)
	f.settled()
	f.gone(xrd)
	f.gone(composition)
	got, err := f.crd(f.workload, xrdCRD)
	if err != nil || got.Generation != own.Generation || len(got.Labels) != 0 || len(got.Annotations) != 0 {
		t.Errorf("want the definition as it was, got %v (%v)", got.ObjectMeta, err)
	}
	if _, err := f.crd(f.workload, compositionCRD); err == nil {
		t.Error("want no definition of Compositions")
	}

	t.Log("when it goes, the cluster shows what the hub has")
	f.Delete(f.workload, own)
	f.copy(xrd, nil)
	f.copy(composition, nil)
	f.reported(xrdCRD, "Served")
}

func TestForeignObjectIsNeverOverwrittenOrDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.composition("aws", "mysqlinstances")
	f.copy(first, nil)
	theirs := object(compositionGVK, "gcp."+f.group)
	theirs.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": "theirs.org/v1", "kind": "Theirs"}, "mode": "Pipeline",
		"pipeline": []any{map[string]any{"step": "compose", "functionRef": map[string]any{"name": "theirs"}}},
	}
	f.Create(f.workload, theirs)
	hub := f.composition("gcp", "mysqlinstances")
	f.reported(compositionCRD, fleetv1alpha1.ReasonObjectForeign)
	f.event(fleetv1alpha1.ReasonObjectForeign)
	f.gaugeIs(1, "masthead_discovery_objects", string(f.cluster), compositionCRD)

	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeNone })
	f.gone(first)
	f.reported(compositionCRD, fleetv1alpha1.ReasonForeignObjectsLeft)
	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeFull })
	f.copy(first, nil)
	f.copy(theirs, func(got *unstructured.Unstructured) error {
		if got.GetUID() != theirs.GetUID() || got.GetGeneration() != 1 || len(got.GetLabels()) != 0 {
			t.Fatalf("want it as it was, got %v", got.Object)
		}
		return nil
	})
	f.Delete(f.workload, theirs)
	f.copy(hub, sameContent(hub))
	f.reported(compositionCRD, "Served")
}

// The kinds of Crossplane v0.12, which no Crossplane of today has.
func TestUserExperienceOfTheOldKinds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	open := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
	kinds := map[string]string{resourceDefinition: "InfrastructureDefinition", resourcePublication: "InfrastructurePublication"}
	for resource, kind := range kinds {
		crd := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: resource + "." + crossplaneGroup},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: crossplaneGroup, Scope: apiextensionsv1.ClusterScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: resource, Kind: kind},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1alpha1", Served: true, Storage: true, Schema: open,
					Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				}},
			},
		}
		f.Create(f.hub, crd)
		t.Cleanup(func() { f.Delete(f.hub, crd) })
	}
	inHub := func(resource, group string, spec map[string]any) *unstructured.Unstructured {
		u := object(compositionGVK.GroupKind().WithVersion("v1alpha1").GroupVersion().WithKind(kinds[resource]), "mysqlinstances."+group)
		u.Object["spec"] = spec
		f.Within("the hub serves "+resource, func() error { return f.hub.Create(f.Ctx, u) })
		return u
	}
	definition := inHub(resourceDefinition, f.group, map[string]any{
		"connectionSecretKeys": []any{"username"}, "crdSpecTemplate": map[string]any{"group": f.group},
	})
	publication := inHub(resourcePublication, f.group, map[string]any{"infrastructureDefinitionRef": map[string]any{"name": definition.GetName()}})
	other := inHub(resourcePublication, "other.org", map[string]any{"infrastructureDefinitionRef": map[string]any{"name": "mysqlinstances.other.org"}})
	f.copy(definition, sameContent(definition))
	f.copy(publication, sameContent(publication))
	f.settled()
	f.gone(other)

	t.Log("when the hub does not have the kinds any more, the cluster does not show them either")
	for resource := range kinds {
		crd, err := f.crd(f.hub, resource+"."+crossplaneGroup)
		if err != nil {
			t.Fatal(err)
		}
		f.Undefine(f.hub, crd)
		f.Within("the definition goes", func() error {
			if _, err := f.crd(f.workload, crd.Name); err == nil {
				return errors.Join(testenv.ReleaseDefinitions(f.Ctx, f.workload), errors.New("it is there"))
			}
			return nil
		})
	}
}

func TestClusterThatComesAndGoes(t *testing.T) {
	f := newFixture(t)
	composition := f.composition("aws", "mysqlinstances")
	f.copy(composition, nil)
	f.settled()
	round := func() {
		f.disengage()
		f.gaugeIs(-1, "masthead_discovery_objects", string(f.cluster))
		f.gaugeIs(-1, "masthead_discovery_writes_total", string(f.cluster))
		f.engage()
		f.gaugeIs(1, "masthead_discovery_objects", string(f.cluster), compositionCRD)
	}
	round()
	f.settled()
	before := runtime.NumGoroutine()
	for range 10 {
		round()
	}
	f.settled()
	f.Within("the goroutines are gone", func() error {
		if after := runtime.NumGoroutine(); after > before+8 {
			return fmt.Errorf("there were %d, there are %d", before, after)
		}
		return nil
	})
}

// A cluster that fails on one object gets the others, and that one when it does not fail any more.
func TestFailureOfOneObjectHindersNoOther(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	var refused atomic.Int32
	f.traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/compositions") {
			return nil
		}
		body, err := req.GetBody()
		if err != nil {
			return nil
		}
		if data, err := io.ReadAll(body); err == nil && strings.Contains(string(data), `"a.`+f.group) {
			refused.Add(1)
			return answer(http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`)
		}
		return nil
	})
	f.start()
	a, b := f.composition("a", "mysqlinstances"), f.composition("b", "mysqlinstances")
	f.copy(b, nil)
	f.Within("the cluster fails on the other", func() error {
		if refused.Load() == 0 {
			return errors.New("it received no request for it")
		}
		return nil
	})
	f.traffic.SetAnswer(nil)
	f.copy(a, nil)
}

// A webhook of the cluster that labels everything must not be fought for ever, nor one that removes what it does not
// know.
func TestClusterThatChangesWhatIsWritten(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		admit  func(*unstructured.Unstructured)
	}{
		"Labels": {
			"What Masthead writes gets a label that it did not have.",
			func(u *unstructured.Unstructured) {
				labels := u.GetLabels()
				labels["theirs.org/seen"] = "true"
				u.SetLabels(labels)
			},
		},
		"Annotations": {
			"What Masthead writes loses its annotation.",
			func(u *unstructured.Unstructured) { u.SetAnnotations(nil) },
		},
		"Content": {
			"What Masthead writes gets another content.",
			func(u *unstructured.Unstructured) {
				if u.GetKind() == compositionGVK.Kind {
					_ = unstructured.SetNestedField(u.Object, "theirs", "spec", "writeConnectionSecretsToNamespace")
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepareFixture(t)
			f.traffic.SetAdmit(func(content map[string]any) {
				if u := (&unstructured.Unstructured{Object: content}); managed.GetMarks(u).IsMastheads() {
					tc.admit(u)
				}
			})
			f.start()
			composition := f.composition("aws", "mysqlinstances")
			f.copy(composition, nil)
			f.gaugeIs(1, "masthead_discovery_objects", string(f.cluster), compositionCRD)
			f.gaugeIs(1, "masthead_discovery_protected", string(f.cluster))
			f.settled()
			written := f.traffic.Writes()
			f.reconciler.enqueueAll()
			f.settled()
			if n := f.traffic.Writes() - written; n != 0 {
				t.Errorf("%s Want it to be left like that, got %d writes", tc.reason, n)
			}
			f.Edit(f.hub, composition, func() { composition.SetLabels(map[string]string{"provider": "gcp"}) })
			f.copy(composition, func(got *unstructured.Unstructured) error {
				if got.GetLabels()["provider"] != "gcp" {
					return fmt.Errorf("its labels are %v", got.GetLabels())
				}
				return nil
			})
		})
	}
}

func TestLeavingTakesEverythingBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	xrd, composition := f.xrd("mysqlinstances"), f.composition("aws", "mysqlinstances")
	f.copy(xrd, nil)
	f.copy(composition, nil)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.cluster))
	theirs := object(compositionGVK, "theirs."+f.group)
	theirs.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": "theirs.org/v1", "kind": "Theirs"}, "mode": "Pipeline",
		"pipeline": []any{map[string]any{"step": "compose", "functionRef": map[string]any{"name": "theirs"}}},
	}
	f.Create(f.workload, theirs)
	f.settled()

	leave := func() {
		fakefleet.Drain(f.T, f.manager.Gate, f.cluster)
		f.releasing(func() {
			if err := f.fleet.Offboard(f.Ctx, f.cluster); err != nil {
				t.Fatal(err)
			}
		})
		for _, kind := range []string{policyKind.Kind, bindingKind.Kind} {
			u := object(policyKind.GroupVersion().WithKind(kind), policyName)
			if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) {
				t.Errorf("want no %s, got %v", kind, err)
			}
		}
		if _, err := f.crd(f.workload, xrdCRD); !apierrors.IsNotFound(err) {
			t.Errorf("want no definition, got %v", err)
		}
		f.gone(composition)
	}
	leave()
	f.copy(theirs, func(got *unstructured.Unstructured) error {
		if got.GetUID() != theirs.GetUID() {
			t.Error("want what is not a copy to stay")
		}
		return nil
	})

	t.Log("the enrolment comes back")
	f.manager.Gate.Open(f.cluster)
	c, _ := f.fleet.Lookup(f.cluster)
	c.State = connection.StateDraining
	f.fleet.Set(c)
	f.copy(xrd, nil)
	f.copy(composition, nil)

	f.Delete(f.workload, theirs)
	f.settled()
	leave()
	if _, err := f.crd(f.workload, compositionCRD); !apierrors.IsNotFound(err) {
		t.Errorf("want no definition, got %v", err)
	}
	f.manager.Gate.Open(f.cluster)
}

// A cluster that does not answer is not waited for.
func TestLeavingAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.copy(f.composition("aws", "mysqlinstances"), nil)
	f.settled()
	f.traffic.SetAnswer(func(*http.Request) *http.Response {
		return answer(http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503}`)
	})
	fakefleet.Drain(f.T, f.manager.Gate, f.cluster)
	if err := f.fleet.Offboard(f.Ctx, f.cluster); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the cluster's own answer, got %v", err)
	}
	f.manager.Gate.Open(f.cluster)
}
