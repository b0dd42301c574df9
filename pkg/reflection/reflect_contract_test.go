// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/test/crdvalidation"
	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// TestNextContract reflects into kinds whose status is that of Cluster API's contract v1beta2, alone or beside that of
// v1beta1. Everything else is as in the kinds that are installed.
func TestNextContract(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]bool{"Alone": false, "BesideV1Beta1": true} {
		hub := readHub(t)
		next := hub.nextContract(t, beside)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, f layouts.Fixture, served reflection.Schemas) {
				t.Helper()
				imp := newImport(f)
				_, today := hub.reflect(t, imp, served, f)
				_, reflected := next.reflect(t, imp, served, f)
				if diff := cmp.Diff(lossyFields(today), lossyFields(reflected)); diff != "" {
					t.Errorf("lossy: -today, +next:\n%s", diff)
				}
				for _, o := range reflected.Objects {
					next.checkDone(t, o, beside)
				}
			})
		})
	}
}

func (h installed) checkDone(t *testing.T, o reflection.Object, beside bool) {
	t.Helper()
	step := "provisioned"
	switch o.Role {
	case reflection.RoleControlPlane:
		step = "controlPlaneInitialized"
	case reflection.RoleInfraCluster, reflection.RoleInfraPool:
	default:
		return
	}
	whole := o.Object.DeepCopy()
	whole.Object["status"] = o.Status.Object["status"]
	h.validate(t, whole)
	done, _, _ := unstructured.NestedBool(whole.Object, "status", "initialization", step)
	ready, _, _ := unstructured.NestedBool(whole.Object, "status", "ready")
	if !done || ready != beside {
		t.Errorf("%s: status.initialization.%s is %t, status.ready %t, and beside v1beta1 %t", o.Object.GetKind(), step, done, ready, beside)
	}
}

// nextContract returns the hub with the status of the contract v1beta2 in the kinds of Cluster API's providers.
func (h installed) nextContract(t *testing.T, beside bool) installed {
	t.Helper()
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range h.crds {
		crd = crd.DeepCopy()
		if slices.Contains(providercrds.Reflected(), schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}) {
			providercrds.AddVersion(crd, beside)
			crd.Spec.Versions = crd.Spec.Versions[1:]
			status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
			if _, ok := status.Properties["failureDomains"]; ok && !beside {
				status.Properties["failureDomains"] = listOfDomains()
			}
		}
		crds = append(crds, crd)
	}
	validators, err := crdvalidation.New(crds...)
	if err != nil {
		t.Fatal(err)
	}
	h.validators = validators
	if h.schemas, err = newSchemas(crds); err != nil {
		t.Fatal(err)
	}
	return h
}

// listOfDomains is how the contract v1beta2 has what is a map in v1beta1.
func listOfDomains() apiextensionsv1.JSONSchemaProps {
	domain := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"name": {Type: "string"}, "controlPlane": {Type: "boolean"},
	}}
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &domain}}
}
