// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// prunedStatus waits for an event with a reason on the enrolled object, and returns its message.
func (f *fixture) prunedStatus(reason string) string {
	f.T.Helper()
	note := ""
	f.Within("an event on the enrolled object tells "+reason, func() error {
		l := &eventsv1.EventList{}
		if err := f.hub.List(f.Ctx, l); err != nil {
			return err
		}
		for _, e := range l.Items {
			if e.Reason == reason && e.Regarding.Name == f.class {
				note = e.Note
				return nil
			}
		}
		return errors.New("there is none")
	})
	return note
}

// versions returns the versions of the definition in the workload cluster, and their roles.
func (f *fixture) versions() map[string]string {
	f.T.Helper()
	crd := f.crd()
	if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
		return map[string]string{"error": err.Error()}
	}
	out := map[string]string{"conversion": string(crd.Spec.Conversion.Strategy)}
	for _, v := range crd.Spec.Versions {
		out[v.Name] = fmt.Sprintf("served=%v storage=%v", v.Served, v.Storage)
	}
	return out
}

func (f *fixture) eventuallyVersions(want map[string]string) {
	f.T.Helper()
	f.Within("the definition has its versions", func() error {
		if diff := cmp.Diff(want, f.versions()); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// editHub changes the hub's definition, and the versions in the XRD accordingly.
func (f *fixture) editHub(referenceable string, change func(*apiextensionsv1.CustomResourceDefinition)) {
	f.T.Helper()
	f.refer(f.editHubCRD(change), referenceable)
}

// editHubCRD changes the hub's definition.
func (f *fixture) editHubCRD(change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	f.T.Helper()
	crd := f.crd()
	f.Edit(f.hub, crd, func() { change(crd) })
	return crd
}

// refer makes the XRD name the versions of the hub's definition.
func (f *fixture) refer(crd *apiextensionsv1.CustomResourceDefinition, referenceable string) {
	f.T.Helper()
	xrd := &unstructured.Unstructured{}
	xrd.SetGroupVersionKind(crossplane.XRDKind.GroupVersionKind)
	xrd.SetName(f.xrdName())
	f.Edit(f.hub, xrd, func() {
		var versions []any
		for _, v := range crd.Spec.Versions {
			versions = append(versions, map[string]any{"name": v.Name, "served": v.Served, "referenceable": v.Name == referenceable})
		}
		_ = unstructured.SetNestedSlice(xrd.Object, versions, "spec", "versions")
	})
}

// conversionWebhook is the hub's Service that converts objects.
func conversionWebhook(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(req.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(raw.Raw); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			u.SetAPIVersion(review.Request.DesiredAPIVersion)
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: u})
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	return s
}

// addVersion adds a version to a definition, and makes it the storage version.
func addVersion(name string, webhook *httptest.Server) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		v := crd.Spec.Versions[0].DeepCopy()
		v.Name = name
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Storage = false
		}
		crd.Spec.Versions = append(crd.Spec.Versions, *v)
		if webhook != nil {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{
						URL:      new(webhook.URL),
						CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}),
					},
					ConversionReviewVersions: []string{"v1"},
				},
			}
		}
	}
}

func TestSynchronizationPullKeepsServedAndStorageVersions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.claim("db")
	f.pushed("db")
	f.editHub("v1beta1", addVersion("v1beta1", nil))
	f.eventuallyVersions(map[string]string{
		"conversion": "None", "v1alpha1": "served=true storage=false", "v1beta1": "served=true storage=true",
	})
	f.synced("db", fleetv1alpha1.ReasonSynced)

	// The hub's administrator has migrated the hub's stored objects, and removes the old version.
	crd := f.crd()
	f.Within("the hub has converted its objects", func() error {
		if err := f.hub.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		crd.Status.StoredVersions = []string{"v1beta1"}
		return f.hub.Status().Update(f.Ctx, crd)
	})
	f.editHub("v1beta1", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[1:] })
	f.eventuallyVersions(map[string]string{
		"conversion": "None", "v1alpha1": "served=false storage=false", "v1beta1": "served=true storage=true",
	})
	u := f.object(f.namespace, "db")
	u.SetAPIVersion(f.group + "/v1beta1")
	f.Within("the claim is synchronised in the new version", func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if c := propagation.AgentSynced(u); c["reason"] != fleetv1alpha1.ReasonSynced {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	if err := f.workload.Delete(f.Ctx, u); err != nil {
		t.Fatal(err)
	}
	f.Within("it can be deleted", func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}

// TestVersionSwitchDisturbsNoClaim publishes another version of a kind, which the workload cluster cannot follow yet.
func TestVersionSwitchDisturbsNoClaim(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	var refuses atomic.Bool
	f.workloadConfig = rest.CopyConfig(f.workloadConfig)
	f.workloadConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return controllertest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if refuses.Load() && req.Method != http.MethodGet && strings.Contains(req.URL.Path, "/customresourcedefinitions/") {
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(req)
		})
	})
	f.start()
	f.settledClaim("db")
	w, _ := f.agent.workloads.Get(f.cluster)
	kind, _ := w.KindFor(f.crd().Name)
	refuses.Store(true)
	f.editHub("v1beta1", addVersion("v1beta1", nil))
	f.Within("the hub publishes the new version", func() error {
		if p, _, _ := f.agent.hub.Publication(f.crd().Name); p.Kind.Version != "v1beta1" {
			return errors.New("it publishes " + p.Kind.Version)
		}
		return nil
	})
	s, err := f.agent.requirements.gatherFacts(f.Ctx, multicluster.ObjectRequest{
		ClusterName: f.cluster, Kind: kind, NamespacedName: types.NamespacedName{Namespace: f.namespace, Name: "db"},
	})
	if err != nil || s == nil {
		t.Fatalf("want the claim to be followed in the old version, got %v, %v", s, err)
	}
	if p := plan.Decide(s.Facts); !p.SkipReport || p.Problem != nil || len(p.Steps) > 0 {
		t.Errorf("want nothing to be done or said before the new version is followed, got %+v", p)
	}
	refuses.Store(false)
	f.eventuallyVersions(map[string]string{
		"conversion": "None", "v1alpha1": "served=true storage=false", "v1beta1": "served=true storage=true",
	})
	f.poke("db")
	f.Within("the claim is synchronised in the new version", func() error {
		u := f.object(f.target, "db")
		u.SetAPIVersion(f.group + "/v1beta1")
		if err := f.hub.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if size, _, _ := unstructured.NestedInt64(u.Object, "spec", "storageGB"); size != 21 {
			return fmt.Errorf("its size is %d", size)
		}
		return nil
	})
}

func TestSynchronizationPullOfADefinitionWithAConversionWebhook(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.editHub("v1beta1", addVersion("v1beta1", conversionWebhook(t)))
	f.start()
	f.eventuallyVersions(map[string]string{
		"conversion": "None", "v1alpha1": "served=false storage=false", "v1beta1": "served=true storage=true",
	})
}

func TestObjectsThatOnlyAWebhookCouldConvertAreNotTakenForAnotherVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.claim("db")
	f.pushed("db")
	f.synced("db", fleetv1alpha1.ReasonSynced)
	crd := f.editHubCRD(addVersion("v1beta1", conversionWebhook(t)))
	want := map[string]string{"conversion": "None", "v1alpha1": "served=true storage=true", "v1beta1": "served=false storage=false"}
	f.eventuallyVersions(want)
	f.refer(crd, "v1beta1")
	f.prunedStatus(fleetv1alpha1.ReasonDefinitionConversion)
	if diff := cmp.Diff(want, f.versions()); diff != "" {
		t.Errorf("want the definition as it was (-want +got):\n%s", diff)
	}
	if _, err := f.get(f.workload, f.namespace, "db"); err != nil {
		t.Fatalf("want the claim to be there, got %v", err)
	}
	if err := f.workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")
	f.eventuallyVersions(map[string]string{
		"conversion": "None", "v1alpha1": "served=false storage=false", "v1beta1": "served=true storage=true",
	})
}

func TestDefinitionThatACrossplaneOfTheClusterTakesOverIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.claim("db")
	f.pushed("db")
	f.synced("db", fleetv1alpha1.ReasonSynced)
	crd := f.crd()
	f.Edit(f.workload, crd, func() {
		crd.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition", Name: "theirs", UID: "theirs", Controller: new(true),
		}}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["theirs"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	if note := f.prunedStatus(fleetv1alpha1.ReasonDefinitionForeign); note == "" {
		t.Error("want the event to name the owner")
	}
	generation := crd.Generation
	f.settled()
	if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil || crd.Generation != generation {
		t.Errorf("want their definition as it is, got generation %d instead of %d (%v)", crd.Generation, generation, err)
	}
	f.claim("theirs")
	f.settled()
	if u, err := f.get(f.workload, f.namespace, "theirs"); err != nil || hasOurFinalizer(u) {
		t.Errorf("want their claims untouched, got %v (%v)", u.Object, err)
	}
	f.restart()
	f.Edit(f.workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, "8", "spec", "version") })
	if err := f.workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")
	f.gone(f.hub, f.target, "db")
}

func TestKeepingStored(t *testing.T) {
	want := agenttest.Parse(t, `{'kind':'C','apiVersion':'v1','spec':{'versions':[{'name':'v2','served':true,'storage':true}]}}`)
	for name, tc := range map[string]struct{ reason, have, want string }{
		"Same":      {reason: "Nothing is stored in another version.", have: `'status':{'storedVersions':['v2']}`, want: `[{'name':'v2','served':true,'storage':true}]`},
		"Stored":    {reason: "What is stored in a version can be read only with it.", have: `'spec':{'versions':[{'name':'v1','served':true,'storage':true,'schema':{}}]},'status':{'storedVersions':['v1']}`, want: `[{'name':'v2','served':true,'storage':true},{'name':'v1','served':false,'storage':false,'schema':{}}]`},
		"NotStored": {reason: "A version in which nothing is stored goes.", have: `'spec':{'versions':[{'name':'v1','served':true}]},'status':{'storedVersions':['v2']}`, want: `[{'name':'v2','served':true,'storage':true}]`},
		"Malformed": {reason: "What is not there cannot be kept.", have: `'spec':{'versions':['v1']},'status':{'storedVersions':['v1']}`, want: `[{'name':'v2','served':true,'storage':true}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got := definition.KeepingStored(want, agenttest.Parse(t, `{'kind':'C','apiVersion':'v1',`+tc.have+`}`))
			wanted := agenttest.Parse(t, `{'kind':'C','apiVersion':'v1','spec':{'versions':`+tc.want+`}}`)
			if diff := cmp.Diff(wanted.Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDefinitionsOfTheOldFormPreserveExplicitly(t *testing.T) {
	hub := agenttest.Parse(t, `{'kind':'C','apiVersion':'v1','spec':{'preserveUnknownFields':true,'versions':[{'name':'v1','schema':{'openAPIV3Schema':{'type':'object'}}}]}}`)
	want := map[string]any{"conversion": map[string]any{"strategy": "None"}, "versions": []any{map[string]any{
		"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
	}}}
	if diff := cmp.Diff(want, definition.DefinitionFor(hub, "v1").Object["spec"]); diff != "" {
		t.Errorf("want what v1 takes, and the same meaning (-want +got):\n%s", diff)
	}
}
