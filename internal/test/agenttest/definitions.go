// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// cacheGVK is the kind of the composites of an XRD v2.
func (f *Fixture) cacheGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: f.Group, Version: "v1alpha1", Kind: "Cache"}
}

// CompositeCRD is a CRD as Crossplane derives it from an XRD v2.
func (f *Fixture) CompositeCRD(kind, plural string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	crd := f.ClaimCRD()
	crd.Name = plural + "." + f.Group
	crd.OwnerReferences[0].Name = crd.Name
	crd.Spec.Scope = scope
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, Categories: []string{"crossplane", "composite"}}
	str := apiextensionsv1.JSONSchemaProps{Type: "string"}
	reference := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": str}}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"memoryMB": {Type: "integer"}, "resourceRef": str,
			"crossplane": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"compositionRef": reference, "compositionUpdatePolicy": str,
				"resourceRefs": {
					Type: "array", XListType: new("atomic"), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"apiVersion": str, "kind": str, "name": str},
					}},
				},
			}},
		},
	}
	return crd
}

// PublishXRD derives an XRD v2 from a CRD, as Crossplane shows it when it is established.
func (f *Fixture) PublishXRD(crd *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	f.T.Helper()
	f.Create(f.Hub, crd)
	xrd := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"group": f.Group, "scope": string(crd.Spec.Scope),
			"names":    map[string]any{"kind": crd.Spec.Names.Kind, "plural": crd.Spec.Names.Plural},
			"versions": []any{map[string]any{"name": "v1alpha1", "served": true, "referenceable": true}},
		},
	}}
	xrd.SetGroupVersionKind(crossplane.XRDKind.GroupVersionKind)
	xrd.SetName(crd.Name)
	f.Create(f.Hub, xrd)
	xrd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	if err := f.Hub.Status().Update(f.Ctx, xrd); err != nil {
		f.T.Fatal(err)
	}
	return xrd
}

// NewCache is a composite without a spec.
func (f *Fixture) NewCache(namespace, name string) *unstructured.Unstructured {
	u := f.NewClaim(namespace, name)
	u.SetGroupVersionKind(f.cacheGVK())
	return u
}

// CreateCache creates a composite in the workload cluster, and returns it with the hub's.
func (f *Fixture) CreateCache(name string, edit ...func(*unstructured.Unstructured)) (local, hub *unstructured.Unstructured) {
	f.T.Helper()
	local = f.NewCache(f.Namespace, name)
	local.Object["spec"] = map[string]any{"memoryMB": int64(64)}
	for _, e := range edit {
		e(local)
	}
	f.Within("the composite is created", func() error { return f.Workload.Create(f.Ctx, local) })
	hub = f.NewCache(f.Target, name)
	f.Within("the composite is pushed", func() error { return f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub) })
	return local, hub
}

// WaitForCacheSynced waits until a composite in the workload cluster has the condition AgentSynced with a reason.
func (f *Fixture) WaitForCacheSynced(name, reason string) *unstructured.Unstructured {
	f.T.Helper()
	u := f.NewCache(f.Namespace, name)
	f.Within("composite "+name+" has AgentSynced with reason "+reason, func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if c := condition.Entry(u, fleetv1alpha1.ConditionAgentSynced); c["reason"] != reason {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	return u
}

// EditHubVersions changes the hub's definition, and the versions in the XRD accordingly.
func (f *Fixture) EditHubVersions(referenceable string, change func(*apiextensionsv1.CustomResourceDefinition)) {
	f.T.Helper()
	f.SetReferenceable(f.EditHubCRD(change), referenceable)
}

// EditHubCRD changes the hub's definition.
func (f *Fixture) EditHubCRD(change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	f.T.Helper()
	crd := f.ClaimCRD()
	f.Edit(f.Hub, crd, func() { change(crd) })
	return crd
}

// SetReferenceable makes the XRD name the versions of the hub's definition.
func (f *Fixture) SetReferenceable(crd *apiextensionsv1.CustomResourceDefinition, referenceable string) {
	f.T.Helper()
	xrd := &unstructured.Unstructured{}
	xrd.SetGroupVersionKind(crossplane.XRDKind.GroupVersionKind)
	xrd.SetName(f.XRDName())
	f.Edit(f.Hub, xrd, func() {
		var versions []any
		for _, v := range crd.Spec.Versions {
			versions = append(versions, map[string]any{"name": v.Name, "served": v.Served, "referenceable": v.Name == referenceable})
		}
		_ = unstructured.SetNestedSlice(xrd.Object, versions, "spec", "versions")
	})
}

// ConversionWebhook is the hub's Service that converts objects.
func ConversionWebhook(t *testing.T) *httptest.Server {
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

// AddVersion adds a version to a definition, and makes it the storage version.
func AddVersion(name string, webhook *httptest.Server) func(*apiextensionsv1.CustomResourceDefinition) {
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

// Withdraw deletes the XRD that offers the claim kind.
func (f *Fixture) Withdraw() {
	f.T.Helper()
	xrd := &unstructured.Unstructured{}
	xrd.SetGroupVersionKind(crossplane.XRDKind.GroupVersionKind)
	xrd.SetName(f.XRDName())
	if err := f.Hub.Delete(f.Ctx, xrd); err != nil {
		f.T.Fatal(err)
	}
}

// WaitForDefinitionGone waits until the workload cluster no longer has the definition.
func (f *Fixture) WaitForDefinitionGone() {
	f.T.Helper()
	f.WaitForUndefined(f.Workload, f.ClaimCRD())
}

// ClaimCRD is the claim CRD as Crossplane makes it.
func (f *Fixture) ClaimCRD() *apiextensionsv1.CustomResourceDefinition {
	str := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "mysqlinstances." + f.Group,
			Annotations: map[string]string{"hub.example.org/note": "stays in the hub"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apiextensions.crossplane.io/v1", Kind: "CompositeResourceDefinition", Name: f.XRDName(), UID: "x", Controller: new(true),
			}},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: f.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "mysqlinstances", Kind: "MySQLInstance", Singular: "mysqlinstance", ListKind: "MySQLInstanceList",
				Categories: []string{"claim"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"version":   str,
							"storageGB": {Type: "integer", Minimum: new(1.0)},
							"tags":      {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &str}},
							"compositionRef": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
								"name": str,
							}},
							"compositeDeletePolicy": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"Background"`)}},
							"resourceRef": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
								"apiVersion": str, "kind": str, "name": str,
							}},
							"writeConnectionSecretToRef": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": str}},
						}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"address": str,
							"conditions": {
								Type: "array", XListType: new("map"), XListMapKeys: []string{"type"},
								Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
									Type:     "object",
									Required: []string{"lastTransitionTime", "reason", "status", "type"},
									Properties: map[string]apiextensionsv1.JSONSchemaProps{
										"lastTransitionTime": {Type: "string", Format: "date-time"},
										"message":            str, "reason": str, "status": str, "type": str,
										"observedGeneration": {Type: "integer", Format: "int64"},
									},
								}},
							},
						}},
					},
				}},
			}},
		},
	}
}

// XRDName is the name of the XRD of the claims.
func (f *Fixture) XRDName() string { return "xmysqlinstances." + f.Group }

// Publish installs the claim CRD in the hub and offers it, as Crossplane does for an XRD.
func (f *Fixture) Publish() {
	f.T.Helper()
	f.Create(f.Hub, f.ClaimCRD())
	f.Offer()
}

// Offer creates the XRD that offers the claim kind.
func (f *Fixture) Offer() {
	f.T.Helper()
	xrd := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"group":      f.Group,
			"claimNames": map[string]any{"kind": "MySQLInstance", "plural": "mysqlinstances"},
			"versions":   []any{map[string]any{"name": "v1alpha1", "served": true, "referenceable": true}},
		},
	}}
	xrd.SetGroupVersionKind(crossplane.XRDKind.GroupVersionKind)
	xrd.SetName(f.XRDName())
	f.Create(f.Hub, xrd)
	f.Within("the hub serves the claim kind", func() error {
		return f.Hub.List(f.Ctx, f.NewClaimList())
	})
	xrd.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Established", "status": "True"}, map[string]any{"type": "Offered", "status": "True"},
	}}
	if err := f.Hub.Status().Update(f.Ctx, xrd); err != nil {
		f.T.Fatal(err)
	}
}

// WaitForServed waits until the workload cluster serves the claim kind, which it needs before a test begins: not for
// the controller alone, but for an API server.
func (f *Fixture) WaitForServed() {
	f.T.Helper()
	setup := f.Case
	setup.Patience = testenv.Patience
	setup.Within("the workload cluster serves the claim kind", func() error { return f.Workload.List(f.Ctx, f.NewClaimList()) })
}
