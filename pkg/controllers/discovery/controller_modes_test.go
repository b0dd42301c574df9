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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/discoverytest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// releasing calls a function that waits until definitions are gone; see testenv.ReleaseDefinitions.
func (f *fixture) releasing(do func()) {
	f.T.Helper()
	ctx, cancel := context.WithCancel(f.Ctx)
	admin, done := f.ClientAsMasthead(), make(chan struct{})
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

func TestSynchronizationPullsDefinitionsAndCompositions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	xrd, composition := f.CreateXRD("mysqlinstances"), f.CreateComposition("aws", "mysqlinstances")
	other := prepareOn(t, f.lane)
	foreignXRD, foreignComposition := other.CreateXRD("mysqlinstances"), other.CreateComposition("aws", "mysqlinstances")

	got := f.WaitForCopy(xrd, discoverytest.SameContent(xrd))
	want := discoverytest.Owner.Stamp(map[string]string{"tier": "gold"})
	if diff := cmp.Diff(want, got.GetLabels()); diff != "" {
		t.Errorf("want the user's labels and ours (-want +got):\n%s", diff)
	}
	if len(got.GetAnnotations()) != 1 || len(got.GetOwnerReferences()) != 0 || len(got.GetFinalizers()) != 0 {
		t.Errorf("want nothing else of the hub's metadata, got %v", got.Object["metadata"])
	}
	copied := f.WaitForCopy(composition, discoverytest.SameContent(composition))
	crd, err := f.GetCRD(f.Workload, discoverytest.XRDCRD)
	if err != nil || crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter || crd.Spec.Versions[0].Subresources.Status != nil {
		t.Errorf("want a definition that works without the hub, got %v (%v)", crd.Spec.Conversion, err)
	}
	f.reported(discoverytest.XRDCRD, "Served")
	f.gaugeIs(1, "masthead_discovery_objects", string(f.Cluster), discoverytest.XRDCRD)
	f.gaugeIs(1, "masthead_discovery_served", string(f.Cluster), discoverytest.CompositionCRD)

	t.Log("a change in the hub follows")
	f.Edit(f.Hub, composition, func() {
		composition.SetLabels(map[string]string{"provider": "gcp"})
		_ = unstructured.SetNestedField(composition.Object, "mine", "spec", "writeConnectionSecretsToNamespace")
	})
	f.WaitForCopy(composition, func(got *unstructured.Unstructured) error {
		if got.GetLabels()["provider"] != "gcp" {
			return fmt.Errorf("its labels are %v", got.GetLabels())
		}
		return discoverytest.SameContent(composition)(got)
	})
	t.Log("what tools know their objects by stays in the hub")
	f.Edit(f.Hub, composition, func() {
		composition.SetLabels(map[string]string{
			"provider": "azure", "app.kubernetes.io/instance": "platform", "kustomize.toolkit.fluxcd.io/name": "platform", "deploy.acmeco.org/release": "platform",
		})
	})
	labels := func(want map[string]string) func(*unstructured.Unstructured) error {
		return func(got *unstructured.Unstructured) error {
			if diff := cmp.Diff(discoverytest.Owner.Stamp(want), got.GetLabels()); diff != "" {
				return fmt.Errorf("its labels are not as wanted (-want +got):\n%s", diff)
			}
			return nil
		}
	}
	f.WaitForCopy(composition, labels(map[string]string{
		"provider": "azure", "deploy.acmeco.org/release": "platform",
	}))
	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.ExcludedMetadata = []string{"acmeco.org/*"} })
	f.WaitForCopy(composition, labels(map[string]string{"provider": "azure"}))
	f.Edit(f.Hub, composition, func() { composition.SetLabels(nil) })
	f.WaitForCopy(composition, func(got *unstructured.Unstructured) error {
		if len(got.GetLabels()) != 2 {
			return fmt.Errorf("its labels are %v", got.GetLabels())
		}
		return nil
	})

	t.Log("drift is put back, and never reaches the hub")
	version := func() string {
		if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(composition), composition); err != nil {
			t.Fatal(err)
		}
		return composition.GetResourceVersion()
	}
	before := version()
	masthead := f.ClientAsMasthead()
	f.Edit(masthead, copied, func() {
		copied.SetLabels(map[string]string{fleetv1alpha1.ManagedByLabel: install.LabelValue, "added": "label"})
		_ = unstructured.SetNestedField(copied.Object, "theirs", "spec", "writeConnectionSecretsToNamespace")
	})
	f.WaitForCopy(composition, func(got *unstructured.Unstructured) error {
		if len(got.GetLabels()) != 2 {
			return fmt.Errorf("its labels are %v", got.GetLabels())
		}
		return discoverytest.SameContent(composition)(got)
	})
	f.Delete(masthead, copied)
	f.WaitForCopy(composition, discoverytest.SameContent(composition))
	edited, err := f.GetCRD(f.Workload, discoverytest.CompositionCRD)
	if err != nil {
		t.Fatal(err)
	}
	f.Edit(masthead, edited, func() { edited.Spec.Names.ShortNames = []string{"hijacked"} })
	f.Within("the definition is put back", func() error {
		got, err := f.GetCRD(f.Workload, discoverytest.CompositionCRD)
		if err == nil && slices.Contains(got.Spec.Names.ShortNames, "hijacked") {
			err = errors.New("it is not")
		}
		return err
	})
	old := f.WaitForCopy(composition, nil)
	f.Delete(masthead, edited)
	f.WaitForCopy(composition, func(got *unstructured.Unstructured) error {
		// The API server deletes the copies before it removes the definition.
		if got.GetUID() == old.GetUID() {
			return errors.New("it is the one from before the definition went")
		}
		return discoverytest.SameContent(composition)(got)
	})
	if after := version(); after != before {
		t.Errorf("want the hub's object untouched, its version went from %s to %s", before, after)
	}

	t.Log("no request is sent when nothing happens, and nothing is written after a restart")
	f.WaitForIdle()
	requests := f.Traffic.Count()
	f.WaitForIdle()
	if n := f.Traffic.Count() - requests; n != 0 {
		t.Errorf("want no requests at rest, got %d: %q", n, f.Traffic.Last(n))
	}
	written := f.Traffic.Writes()
	f.restart()
	f.gaugeIs(1, "masthead_discovery_objects", string(f.Cluster), discoverytest.CompositionCRD)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
	f.WaitForIdle()
	// One request asks for Masthead's username.
	if n := f.Traffic.Writes() - written; n != 1 {
		t.Errorf("want nothing written after a restart, got %d requests: %q", n-1, f.Traffic.Last(20))
	}

	t.Log("what is not offered was never there")
	for _, u := range []*unstructured.Unstructured{foreignXRD, foreignComposition} {
		f.WaitForGone(u)
	}

	t.Log("what goes from the hub, or is not offered any more, goes")
	f.Delete(f.Hub, composition)
	f.WaitForGone(composition)
	f.WaitForCopy(xrd, nil)
	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.APIGroups = []string{other.Group} })
	f.WaitForGone(xrd)
	f.WaitForCopy(foreignXRD, nil)
	f.WaitForCopy(foreignComposition, nil)
}

func TestDiscoveryModes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	xrd, composition := f.CreateXRD("mysqlinstances"), f.CreateComposition("aws", "mysqlinstances")
	f.WaitForCopy(xrd, nil)
	f.WaitForCopy(composition, nil)
	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeDefinitionsOnly })
	f.WaitForGone(composition)
	f.WaitForCopy(xrd, nil)
	f.reported(discoverytest.CompositionCRD, "")
	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeNone })
	f.WaitForGone(xrd)
	f.gaugeIs(-1, "masthead_discovery_served", string(f.Cluster), discoverytest.XRDCRD)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
	f.WaitForIdle()
	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeFull })
	f.WaitForCopy(xrd, nil)
	f.WaitForCopy(composition, nil)
}

// A hub's object that was deleted and created again unnoticed can differ in fields that cannot be changed.
func TestObjectRecreatedInTheHub(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	composition := f.CreateComposition("aws", "mysqlinstances")
	f.WaitForCopy(composition, nil)
	f.stop()
	f.Delete(f.Hub, composition)
	composition = f.CreateComposition("aws", "postgresinstances")
	f.registry = prometheus.NewRegistry()
	f.start()
	f.WaitForCopy(composition, discoverytest.SameContent(composition))
}

func TestOwnCrossplaneIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	hub, err := f.GetCRD(f.Hub, discoverytest.XRDCRD)
	if err != nil {
		t.Fatal(err)
	}
	own := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: discoverytest.XRDCRD}, Spec: hub.Spec}
	f.Create(f.Workload, own)
	t.Cleanup(func() { f.Delete(f.Workload, own) })
	f.start()
	xrd, composition := f.CreateXRD("mysqlinstances"), f.CreateComposition("aws", "mysqlinstances")
	f.reported(discoverytest.XRDCRD, fleetv1alpha1.ReasonOwnCrossplane)
	f.WaitForEvent(fleetv1alpha1.ReasonOwnCrossplane)
	f.gaugeIs(0, "masthead_discovery_served", string(f.Cluster), discoverytest.XRDCRD)
	f.WaitForIdle()
	f.WaitForGone(xrd)
	f.WaitForGone(composition)
	got, err := f.GetCRD(f.Workload, discoverytest.XRDCRD)
	if err != nil || got.Generation != own.Generation || len(got.Labels) != 0 || len(got.Annotations) != 0 {
		t.Errorf("want the definition as it was, got %v (%v)", got.ObjectMeta, err)
	}
	if _, err := f.GetCRD(f.Workload, discoverytest.CompositionCRD); err == nil {
		t.Error("want no definition of Compositions")
	}

	t.Log("when it goes, the cluster shows what the hub has")
	f.Delete(f.Workload, own)
	f.WaitForCopy(xrd, nil)
	f.WaitForCopy(composition, nil)
	f.reported(discoverytest.XRDCRD, "Served")
}

func TestForeignObjectIsNeverOverwrittenOrDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.CreateComposition("aws", "mysqlinstances")
	f.WaitForCopy(first, nil)
	theirs := discoverytest.NewObject(discoverytest.CompositionKind, "gcp."+f.Group)
	theirs.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": "theirs.org/v1", "kind": "Theirs"}, "mode": "Pipeline",
		"pipeline": []any{map[string]any{"step": "compose", "functionRef": map[string]any{"name": "theirs"}}},
	}
	f.Create(f.Workload, theirs)
	hub := f.CreateComposition("gcp", "mysqlinstances")
	f.reported(discoverytest.CompositionCRD, fleetv1alpha1.ReasonObjectForeign)
	f.WaitForEvent(fleetv1alpha1.ReasonObjectForeign)
	f.gaugeIs(1, "masthead_discovery_objects", string(f.Cluster), discoverytest.CompositionCRD)

	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeNone })
	f.WaitForGone(first)
	f.reported(discoverytest.CompositionCRD, fleetv1alpha1.ReasonForeignObjectsLeft)
	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeFull })
	f.WaitForCopy(first, nil)
	f.WaitForCopy(theirs, func(got *unstructured.Unstructured) error {
		if got.GetUID() != theirs.GetUID() || got.GetGeneration() != 1 || len(got.GetLabels()) != 0 {
			t.Fatalf("want it as it was, got %v", got.Object)
		}
		return nil
	})
	f.Delete(f.Workload, theirs)
	f.WaitForCopy(hub, discoverytest.SameContent(hub))
	f.reported(discoverytest.CompositionCRD, "Served")
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
		f.Create(f.Hub, crd)
		t.Cleanup(func() { f.Delete(f.Hub, crd) })
	}
	inHub := func(resource, group string, spec map[string]any) *unstructured.Unstructured {
		u := discoverytest.NewObject(discoverytest.CompositionKind.GroupKind().WithVersion("v1alpha1").GroupVersion().WithKind(kinds[resource]), "mysqlinstances."+group)
		u.Object["spec"] = spec
		f.Within("the hub serves "+resource, func() error { return f.Hub.Create(f.Ctx, u) })
		return u
	}
	definition := inHub(resourceDefinition, f.Group, map[string]any{
		"connectionSecretKeys": []any{"username"}, "crdSpecTemplate": map[string]any{"group": f.Group},
	})
	publication := inHub(resourcePublication, f.Group, map[string]any{"infrastructureDefinitionRef": map[string]any{"name": definition.GetName()}})
	other := inHub(resourcePublication, "other.org", map[string]any{"infrastructureDefinitionRef": map[string]any{"name": "mysqlinstances.other.org"}})
	f.WaitForCopy(definition, discoverytest.SameContent(definition))
	f.WaitForCopy(publication, discoverytest.SameContent(publication))
	f.WaitForIdle()
	f.WaitForGone(other)

	t.Log("when the hub does not have the kinds any more, the cluster does not show them either")
	for resource := range kinds {
		crd, err := f.GetCRD(f.Hub, resource+"."+crossplaneGroup)
		if err != nil {
			t.Fatal(err)
		}
		f.Undefine(f.Hub, crd)
		f.Within("the definition goes", func() error {
			if _, err := f.GetCRD(f.Workload, crd.Name); err == nil {
				return errors.Join(testenv.ReleaseDefinitions(f.Ctx, f.Workload), errors.New("it is there"))
			}
			return nil
		})
	}
}

func TestClusterThatComesAndGoes(t *testing.T) {
	f := newFixture(t)
	composition := f.CreateComposition("aws", "mysqlinstances")
	f.WaitForCopy(composition, nil)
	f.WaitForIdle()
	round := func() {
		f.disengage()
		f.gaugeIs(-1, "masthead_discovery_objects", string(f.Cluster))
		f.gaugeIs(-1, "masthead_discovery_writes_total", string(f.Cluster))
		f.engage()
		f.gaugeIs(1, "masthead_discovery_objects", string(f.Cluster), discoverytest.CompositionCRD)
	}
	round()
	f.WaitForIdle()
	before := runtime.NumGoroutine()
	for range 10 {
		round()
	}
	f.WaitForIdle()
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
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/compositions") {
			return nil
		}
		body, err := req.GetBody()
		if err != nil {
			return nil
		}
		if data, err := io.ReadAll(body); err == nil && strings.Contains(string(data), `"a.`+f.Group) {
			refused.Add(1)
			return controllertest.JSONAnswer(req, http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`)
		}
		return nil
	})
	f.start()
	a, b := f.CreateComposition("a", "mysqlinstances"), f.CreateComposition("b", "mysqlinstances")
	f.WaitForCopy(b, nil)
	f.Within("the cluster fails on the other", func() error {
		if refused.Load() == 0 {
			return errors.New("it received no request for it")
		}
		return nil
	})
	f.Traffic.SetAnswer(nil)
	f.WaitForCopy(a, nil)
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
				if u.GetKind() == discoverytest.CompositionKind.Kind {
					_ = unstructured.SetNestedField(u.Object, "theirs", "spec", "writeConnectionSecretsToNamespace")
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepareFixture(t)
			f.Traffic.SetAdmit(func(content map[string]any) {
				if u := (&unstructured.Unstructured{Object: content}); install.GetMarks(u).IsMastheads() {
					tc.admit(u)
				}
			})
			f.start()
			composition := f.CreateComposition("aws", "mysqlinstances")
			f.WaitForCopy(composition, nil)
			f.gaugeIs(1, "masthead_discovery_objects", string(f.Cluster), discoverytest.CompositionCRD)
			f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
			f.WaitForIdle()
			written := f.Traffic.Writes()
			f.reconciler.enqueueAll()
			f.WaitForIdle()
			if n := f.Traffic.Writes() - written; n != 0 {
				t.Errorf("%s Want it to be left like that, got %d writes", tc.reason, n)
			}
			f.Edit(f.Hub, composition, func() { composition.SetLabels(map[string]string{"provider": "gcp"}) })
			f.WaitForCopy(composition, func(got *unstructured.Unstructured) error {
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
	xrd, composition := f.CreateXRD("mysqlinstances"), f.CreateComposition("aws", "mysqlinstances")
	f.WaitForCopy(xrd, nil)
	f.WaitForCopy(composition, nil)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
	theirs := discoverytest.NewObject(discoverytest.CompositionKind, "theirs."+f.Group)
	theirs.Object["spec"] = map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": "theirs.org/v1", "kind": "Theirs"}, "mode": "Pipeline",
		"pipeline": []any{map[string]any{"step": "compose", "functionRef": map[string]any{"name": "theirs"}}},
	}
	f.Create(f.Workload, theirs)
	f.WaitForIdle()

	leave := func() {
		fakefleet.Drain(f.T, f.manager.Gate, f.Cluster)
		f.releasing(func() {
			if err := f.fleet.Offboard(f.Ctx, f.Cluster); err != nil {
				t.Fatal(err)
			}
		})
		for _, kind := range []string{policyKind.Kind, bindingKind.Kind} {
			u := discoverytest.NewObject(policyKind.GroupVersion().WithKind(kind), policyName)
			if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) {
				t.Errorf("want no %s, got %v", kind, err)
			}
		}
		if _, err := f.GetCRD(f.Workload, discoverytest.XRDCRD); !apierrors.IsNotFound(err) {
			t.Errorf("want no definition, got %v", err)
		}
		f.WaitForGone(composition)
	}
	leave()
	f.WaitForCopy(theirs, func(got *unstructured.Unstructured) error {
		if got.GetUID() != theirs.GetUID() {
			t.Error("want what is not a copy to stay")
		}
		return nil
	})

	t.Log("the enrolment comes back")
	f.manager.Gate.Open(f.Cluster)
	c, _ := f.fleet.Lookup(f.Cluster)
	c.State = connection.StateDraining
	f.fleet.Set(c)
	f.WaitForCopy(xrd, nil)
	f.WaitForCopy(composition, nil)

	f.Delete(f.Workload, theirs)
	f.WaitForIdle()
	leave()
	if _, err := f.GetCRD(f.Workload, discoverytest.CompositionCRD); !apierrors.IsNotFound(err) {
		t.Errorf("want no definition, got %v", err)
	}
	f.manager.Gate.Open(f.Cluster)
}

// A cluster that does not answer is not waited for.
func TestLeavingAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForCopy(f.CreateComposition("aws", "mysqlinstances"), nil)
	f.WaitForIdle()
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		return controllertest.JSONAnswer(req, http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503}`)
	})
	fakefleet.Drain(f.T, f.manager.Gate, f.Cluster)
	if err := f.fleet.Offboard(f.Ctx, f.Cluster); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the cluster's own answer, got %v", err)
	}
	f.manager.Gate.Open(f.Cluster)
}
