// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// versions returns the versions of the definition in the workload cluster, and their roles.
func (f *fixture) versions() map[string]string {
	f.T.Helper()
	crd := f.ClaimCRD()
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
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

func TestSynchronizationPullKeepsServedAndStorageVersions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("db")
	f.WaitForPushed("db")
	f.EditHubVersions("v1beta1", agenttest.AddVersion("v1beta1", nil))
	f.eventuallyVersions(map[string]string{
		"conversion": "None", "v1alpha1": "served=true storage=false", "v1beta1": "served=true storage=true",
	})
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)

	// The hub's administrator migrates the stored object by an update that changes nothing, and removes the old version.
	f.Within("the object is stored in the new version", func() error {
		u := f.NewClaim(f.Target, "db")
		u.SetAPIVersion(f.Group + "/v1beta1")
		if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		return f.Hub.Update(f.Ctx, u)
	})
	crd := f.ClaimCRD()
	f.Within("the hub has converted its objects", func() error {
		if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		crd.Status.StoredVersions = []string{"v1beta1"}
		return f.Hub.Status().Update(f.Ctx, crd)
	})
	f.EditHubVersions("v1beta1", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[1:] })
	f.eventuallyVersions(map[string]string{
		"conversion": "None", "v1alpha1": "served=false storage=false", "v1beta1": "served=true storage=true",
	})
	u := f.NewClaim(f.Namespace, "db")
	u.SetAPIVersion(f.Group + "/v1beta1")
	f.Within("the claim is synchronised in the new version", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if c := propagation.AgentSynced(u); c["reason"] != fleetv1alpha1.ReasonSynced {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	if err := f.Workload.Delete(f.Ctx, u); err != nil {
		t.Fatal(err)
	}
	f.Within("it can be deleted", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) {
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
	f.WorkloadConfig = rest.CopyConfig(f.WorkloadConfig)
	f.WorkloadConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return controllertest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if refuses.Load() && req.Method != http.MethodGet && strings.Contains(req.URL.Path, "/customresourcedefinitions/") {
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(req)
		})
	})
	f.start()
	f.settledClaim("db")
	w, _ := f.agent.workloads.Get(f.Cluster)
	kind, _ := w.KindFor(f.ClaimCRD().Name)
	refuses.Store(true)
	f.EditHubVersions("v1beta1", agenttest.AddVersion("v1beta1", nil))
	// The hub publishes the version, and serves it. Until both are known, claims are carried in the old one.
	f.Within("the hub is read in the new version", func() error {
		if k := f.agent.hub.HubKind(kind); k.Version != "v1beta1" {
			return errors.New("it is read in " + k.Version)
		}
		return nil
	})
	s, err := f.agent.requirements.gatherFacts(f.Ctx, multicluster.ObjectRequest{
		ClusterName: f.Cluster, Kind: kind, NamespacedName: types.NamespacedName{Namespace: f.Namespace, Name: "db"},
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
	f.TouchClaim("db")
	f.Within("the claim is synchronised in the new version", func() error {
		u := f.NewClaim(f.Target, "db")
		u.SetAPIVersion(f.Group + "/v1beta1")
		if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
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
	f.EditHubVersions("v1beta1", agenttest.AddVersion("v1beta1", agenttest.ConversionWebhook(t)))
	f.start()
	f.eventuallyVersions(map[string]string{
		"conversion": "None", "v1alpha1": "served=false storage=false", "v1beta1": "served=true storage=true",
	})
}

func TestObjectsThatOnlyAWebhookCouldConvertAreNotTakenForAnotherVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.CreateClaim("db")
	f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	crd := f.EditHubCRD(agenttest.AddVersion("v1beta1", agenttest.ConversionWebhook(t)))
	want := map[string]string{"conversion": "None", "v1alpha1": "served=true storage=true", "v1beta1": "served=false storage=false"}
	f.eventuallyVersions(want)
	f.SetReferenceable(crd, "v1beta1")
	f.WaitForEvent(fleetv1alpha1.ReasonDefinitionConversion)
	if diff := cmp.Diff(want, f.versions()); diff != "" {
		t.Errorf("want the definition as it was (-want +got):\n%s", diff)
	}
	if _, err := f.GetClaim(f.Workload, f.Namespace, "db"); err != nil {
		t.Fatalf("want the claim to be there, got %v", err)
	}
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.eventuallyVersions(map[string]string{
		"conversion": "None", "v1alpha1": "served=false storage=false", "v1beta1": "served=true storage=true",
	})
}

func TestDefinitionThatACrossplaneOfTheClusterTakesOverIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.CreateClaim("db")
	f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	crd := f.ClaimCRD()
	f.Edit(f.Workload, crd, func() {
		crd.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition", Name: "theirs", UID: "theirs", Controller: new(true),
		}}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["theirs"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	if note := f.WaitForEvent(fleetv1alpha1.ReasonDefinitionForeign); note == "" {
		t.Error("want the event to name the owner")
	}
	generation := crd.Generation
	f.WaitForIdle()
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(crd), crd); err != nil || crd.Generation != generation {
		t.Errorf("want their definition as it is, got generation %d instead of %d (%v)", crd.Generation, generation, err)
	}
	f.CreateClaim("theirs")
	f.WaitForIdle()
	if u, err := f.GetClaim(f.Workload, f.Namespace, "theirs"); err != nil || agenttest.HasOurFinalizer(u) {
		t.Errorf("want their claims untouched, got %v (%v)", u.Object, err)
	}
	f.restart()
	f.Edit(f.Workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, "8", "spec", "version") })
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.WaitForGone(f.Hub, f.Target, "db")
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
