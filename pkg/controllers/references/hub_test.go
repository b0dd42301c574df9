// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// hubGroup has the kinds of the tests of the hub: XNetwork, which is cluster-scoped, and Network.
const hubGroup = "net.acmeco.org"

// hubServer is the API server of a hub, whose own objects are handled as the class "hub" says.
var (
	hubServer *envtest.Environment

	startHub = sync.OnceValues(func() (client.Client, error) {
		env, err := testenv.New(testenv.CRDs())
		if err != nil {
			return nil, err
		}
		hubServer = env
		cfg, err := testenv.Start(env)
		if err != nil {
			return nil, fmt.Errorf("cannot start an API server: %w", err)
		}
		cfg.QPS = -1
		c, err := client.New(cfg, client.Options{Scheme: scheme()})
		if err != nil {
			return nil, err
		}
		mgr, err := newManager(cfg)
		if err != nil {
			return nil, err
		}
		err = Setup(mgr, Options{
			Fleet: &fakefleet.Fleet{}, HubClass: "hub", Gate: multicluster.NewGate(), Registerer: prometheus.NewRegistry(), SkipNameValidation: new(true),
		})
		if err != nil {
			return nil, err
		}
		go func() { _ = mgr.Start(context.Background()) }()
		for kind, scope := range map[string]apiextensionsv1.ResourceScope{"XNetwork": apiextensionsv1.ClusterScoped, "Network": apiextensionsv1.NamespaceScoped} {
			crd, err := withReferences(kind, scope)
			if err != nil {
				return nil, err
			}
			if err := c.Create(context.Background(), crd); err != nil {
				return nil, err
			}
		}
		return c, nil
	})
)

// withReferences is the definition of a kind into which the schema of references was pasted.
func withReferences(kind string, scope apiextensionsv1.ResourceScope) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "references", "schema.yaml"))
	if err != nil {
		return nil, err
	}
	var pasted map[string]apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict(data, &pasted); err != nil {
		return nil, err
	}
	str := apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec := map[string]apiextensionsv1.JSONSchemaProps{
		"references": pasted["references"],
		"region":     str, "token": {Type: "string", Format: "password"},
		"values":   {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &str}},
		"claimRef": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"kind": str, "namespace": str, "name": str}},
	}
	crd := openDefinition(hubGroup, kind, map[string]string{"XNetwork": "xnetworks", "Network": "networks"}[kind])
	crd.Spec.Scope = scope
	crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: spec},
		"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"conditions": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true),
			}}},
		}},
	}}
	return crd, nil
}

// hub creates the hub's class, which permits references to one Secret, and returns the hub's client.
func hub(t *testing.T) client.Client {
	t.Helper()
	c, err := startHub()
	if err != nil {
		t.Fatal(err)
	}
	class := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: "hub"}, Spec: fleetv1alpha1.EnrollmentClassSpec{
		Agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled},
		References: fleetv1alpha1.ReferencesSpec{
			Mode: fleetv1alpha1.ReferencesModeEnabled, Secrets: []fleetv1alpha1.ReferencedSecret{{Namespace: "default", Name: "shared"}},
		},
	}}
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), class)); err != nil {
		t.Fatal(err)
	}
	return c
}

// network is an object of the hub that takes its region from a ConfigMap.
func network(kind, ns, name, from string) *unstructured.Unstructured {
	reference := map[string]any{"resource": "configmaps", "name": "settings", "fromFieldPath": "data.region", "toFieldPath": "spec.region"}
	if from != "" {
		reference["namespace"] = from
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": hubGroup + "/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": map[string]any{"references": []any{reference}},
	}}
	u.SetNamespace(ns)
	return u
}

func field(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

// reaches waits until an object has the condition with a reason, and returns it.
func reaches(t *testing.T, c client.Client, u *unstructured.Unstructured, reason string) *unstructured.Unstructured {
	t.Helper()
	var shown map[string]any
	err := testenv.Poll(t.Context(), patience, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(u), u)
		shown = condition.Entry(u, commonv1alpha1.ConditionReferencesResolved)
		return shown["reason"] == reason, err
	})
	if err != nil {
		t.Fatalf("%s has not come to the reason %s: %v: %v", u.GetName(), reason, err, shown)
	}
	return u
}

// untouched checks that the references of objects were not resolved. It first waits until objects that are created
// later are resolved.
func untouched(t *testing.T, c client.Client, objects ...*unstructured.Unstructured) {
	t.Helper()
	for i := range 3 {
		later := network("XNetwork", "", fmt.Sprintf("after-%s-%d", objects[0].GetName(), i), "default")
		createServedBy(t, c, later)
		reaches(t, c, later, commonv1alpha1.ReasonResolved)
	}
	for _, u := range objects {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		if field(u, "spec", "region") != "" || field(u, "spec", "token") != "" || condition.Entry(u, commonv1alpha1.ConditionReferencesResolved) != nil {
			t.Errorf("want %s to be left alone, got %v", u.GetName(), u.Object)
		}
	}
}

// settings creates a ConfigMap in a new namespace of the hub, and one in default, and returns the name of the new
// namespace.
func settings(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "hub-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{ns.Name, "default"} {
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), configMap(in, "settings", map[string]string{"region": "of " + in}))); err != nil {
			t.Fatal(err)
		}
	}
	return ns.Name
}

func TestHubResolvesItsOwnObjects(t *testing.T) {
	c := hub(t)
	ns := settings(t, c)
	inNamespace, scoped := network("Network", ns, "own", ""), network("XNetwork", "", "own", ns)
	for _, u := range []*unstructured.Unstructured{inNamespace, scoped} {
		createServedBy(t, c, u)
		if got := field(reaches(t, c, u, commonv1alpha1.ReasonResolved), "spec", "region"); got != "of "+ns {
			t.Errorf("%s was not filled: %q", u.GetKind(), got)
		}
	}
	other := network("Network", ns, "other", "default")
	createServedBy(t, c, other)
	if got := field(reaches(t, c, other, commonv1alpha1.ReasonNotPermitted), "spec", "region"); got != "" {
		t.Errorf("an object in a namespace was filled from another one: %q", got)
	}
}

// TestReadSecretThroughClusterScopedObject: users who may create cluster-scoped objects must not thereby be able to
// read every Secret.
func TestReadSecretThroughClusterScopedObject(t *testing.T) {
	c := hub(t)
	ns := settings(t, c)
	for in, name := range map[string]string{ns: "token", "default": "shared"} {
		if err := c.Create(t.Context(), secret(in, name, "of "+in)); err != nil {
			t.Fatal(err)
		}
	}
	takes := func(object, in, name string) *unstructured.Unstructured {
		u := network("XNetwork", "", object, in)
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{
			"resource": "secrets", "namespace": in, "name": name, "fromFieldPath": "data.token", "toFieldPath": "spec.token",
		}}, "spec", "references")
		createServedBy(t, c, u)
		return u
	}
	if got := field(reaches(t, c, takes("attack", ns, "token"), commonv1alpha1.ReasonNotPermitted), "spec", "token"); got != "" {
		t.Errorf("a Secret that the operator did not allow was read: %q", got)
	}
	if got := field(reaches(t, c, takes("allowed", "default", "shared"), commonv1alpha1.ReasonResolved), "spec", "token"); got != "of default" {
		t.Errorf("a Secret that the operator allowed was not read: %q", got)
	}
}

// TestReadHubThroughSyncedClaim: a claim of a workload cluster brings its references to the hub, where its author has
// no rights.
func TestReadHubThroughSyncedClaim(t *testing.T) {
	c := hub(t)
	ns := settings(t, c)
	var attacks []*unstructured.Unstructured
	for name, annotations := range map[string]map[string]string{
		"synced":    {fleetv1alpha1.SourceUIDAnnotation: "w1", fleetv1alpha1.SourceNamespaceAnnotation: "team-a"},
		"half":      {fleetv1alpha1.SourceNamespaceAnnotation: ""},
		"abandoned": {fleetv1alpha1.ReleasedFromAnnotation: "w1/team-a"},
	} {
		u := network("Network", ns, name, "")
		u.SetAnnotations(annotations)
		createServedBy(t, c, u)
		attacks = append(attacks, u)
	}
	untouched(t, c, attacks...)
}

// TestReadOtherNamespaceThroughCompositeOfClaim: Crossplane copies the references of a claim into its composite, which
// is cluster-scoped.
func TestReadOtherNamespaceThroughCompositeOfClaim(t *testing.T) {
	c := hub(t)
	ns := settings(t, c)
	u := network("XNetwork", "", "composite", ns)
	_ = unstructured.SetNestedStringMap(u.Object, map[string]string{"kind": "Network", "namespace": "default", "name": "claim"}, "spec", "claimRef")
	createServedBy(t, c, u)
	untouched(t, c, u)
}

// TestHubIsLeftAloneWithoutItsClass: a change of the class takes effect at once, for the hub as for a workload cluster.
func TestHubIsLeftAloneWithoutItsClass(t *testing.T) {
	c := hub(t)
	ns := settings(t, c)
	setMode := func(mode fleetv1alpha1.ReferencesMode) {
		class := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: "hub"}}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
			t.Fatal(err)
		}
		class.Spec.References.Mode = mode
		if err := c.Update(t.Context(), class); err != nil {
			t.Fatal(err)
		}
	}
	setMode(fleetv1alpha1.ReferencesModeDisabled)
	u := network("Network", ns, "waits", "")
	createServedBy(t, c, u)
	setMode(fleetv1alpha1.ReferencesModeEnabled)
	reaches(t, c, u, commonv1alpha1.ReasonResolved)
}
