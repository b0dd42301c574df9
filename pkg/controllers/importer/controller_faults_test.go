// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"path"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/reflection"
)

// hubFaults are what a hub lacks, or does to objects.
type hubFaults struct {
	// hidden kinds are not served.
	hidden []schema.GroupKind
	// denied is the right that the manager lacks: a verb, and the plural of a kind with its group.
	denied string
	// drops is a field that a managed resource loses when it is created, in dry runs too.
	drops []string
	// refuses is a kind of which the hub refuses every object as one with an unknown field.
	refuses schema.GroupKind
	// forbids is a kind that the manager may not create, regardless of the answers to its access reviews.
	forbids schema.GroupKind
	// webhook refuses objects that are created, and the updates of those that are there. refusals is how often.
	webhook  func(want, there *unstructured.Unstructured) error
	refusals int
}

// review is what the webhook says.
func (f *hubFaults) review(want, there *unstructured.Unstructured) error {
	if f.webhook == nil {
		return nil
	}
	err := f.webhook(want, there)
	if err != nil {
		f.refusals++
	}
	return err
}

func (f *hubFaults) hide(kind reflection.Kind) {
	f.hideKind(kind.Namespaced())
	f.hideKind(kind.Legacy())
}

func (f *hubFaults) hideKind(gk schema.GroupKind) { f.hidden = append(f.hidden, gk) }

// get has no CRD of a hidden kind.
func (f *hubFaults) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	for _, gk := range f.hidden {
		resource, _ := meta.UnsafeGuessKindToResource(gk.WithVersion(""))
		if o.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" && key.Name == resource.GroupResource().String() {
			return apierrors.NewNotFound(apiextensionsv1.Resource("customresourcedefinitions"), key.Name)
		}
	}
	return c.Get(ctx, key, o, opts...)
}

// createObjects is the right that the manager has with config/imports only, for every cloud.
const createObjects = "create clusterimports/objects.fleet.masthead.dev"

func (f *hubFaults) denies(a *authorizationv1.ResourceAttributes) bool {
	return a.Verb+" "+path.Join(a.Resource, a.Subresource)+"."+a.Group == f.denied
}

// admit is what the hub does to an object before it is created.
func (f *hubFaults) admit(o client.Object) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if u.GroupVersionKind().GroupKind() == f.refuses {
		return apierrors.NewBadRequest(`strict decoding error: unknown field "spec.managementPolicies"`)
	}
	if u.GroupVersionKind().GroupKind() == f.forbids {
		return apierrors.NewForbidden(schema.GroupResource{Group: f.forbids.Group, Resource: f.forbids.Kind}, u.GetName(), errors.New("no such right"))
	}
	if err := f.review(u, nil); err != nil {
		return err
	}
	if len(f.drops) > 0 && slices.Contains(managedGroups(), u.GroupVersionKind().Group) {
		unstructured.RemoveNestedField(u.Object, f.drops...)
	}
	return nil
}

func managedGroups() []string {
	return []string{reflection.EKSCluster.Namespaced().Group, reflection.EC2VPC.Namespaced().Group}
}

// faultyMapper does not know the kinds that a hub does not serve.
type faultyMapper struct {
	meta.RESTMapper

	faults *hubFaults
}

// RESTMapping implements meta.RESTMapper.
func (m faultyMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if slices.Contains(m.faults.hidden, gk) {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return m.RESTMapper.RESTMapping(gk, versions...) //nolint:wrapcheck // The error is the mapper's.
}

var resourceDefinitionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Kind: "ManagedResourceDefinition"}

// resourceDefinition is what Crossplane 2 has for a kind of managed resource, whether that is served or not.
func resourceDefinition(name, state string) client.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"state": state}}}
	u.SetGroupVersionKind(resourceDefinitionKind)
	u.SetName(name)
	return u
}

// changeCRD changes the schema of spec or status in the CRD of a managed resource.
func (h *hubOfOneImport) changeCRD(kind reflection.Kind, of string, change func(*apiextensionsv1.JSONSchemaProps)) {
	h.t.Helper()
	gk := kind.Namespaced()
	mapping, err := h.r.mapper.RESTMapping(gk)
	if err != nil {
		h.t.Fatal(err)
	}
	stored := h.object(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), "", mapping.Resource.Resource+"."+gk.Group)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, crd); err != nil {
		h.t.Fatal(err)
	}
	for _, v := range crd.Spec.Versions {
		changed := v.Schema.OpenAPIV3Schema.Properties[of]
		change(&changed)
		v.Schema.OpenAPIV3Schema.Properties[of] = changed
	}
	if stored.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(crd); err != nil {
		h.t.Fatal(err)
	}
	stored.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := h.c.Update(h.t.Context(), stored); err != nil {
		h.t.Fatal(err)
	}
}

// withoutPolicies makes a CRD an old one that still has managementPolicy, in the singular.
func withoutPolicies(spec *apiextensionsv1.JSONSchemaProps) {
	delete(spec.Properties, "managementPolicies")
	spec.Properties["managementPolicy"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
}

// withoutObserve removes the value Observe from a CRD.
func withoutObserve(spec *apiextensionsv1.JSONSchemaProps) {
	policies := spec.Properties["managementPolicies"]
	policies.Items.Schema.Enum = slices.DeleteFunc(policies.Items.Schema.Enum, func(j apiextensionsv1.JSON) bool { return string(j.Raw) == `"Observe"` })
	spec.Properties["managementPolicies"] = policies
}
