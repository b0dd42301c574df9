// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/crdvalidation"
	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
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
			each(t, func(t *testing.T, f layouts.Fixture, served reflection.Served) {
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
		group, ofClusterAPI := strings.CutSuffix(crd.Spec.Group, ".cluster.x-k8s.io")
		if ofClusterAPI && slices.Contains([]string{"infrastructure", "controlplane"}, group) {
			for _, v := range crd.Spec.Versions {
				changeContract(v.Schema.OpenAPIV3Schema, strings.HasSuffix(crd.Spec.Names.Kind, "ControlPlane"), beside)
			}
		}
		crds = append(crds, crd)
	}
	validators, err := crdvalidation.New(crds...)
	if err != nil {
		t.Fatal(err)
	}
	h.schemas, h.validators = reflection.NewSchemas(crds...), validators
	return h
}

func changeContract(schema *apiextensionsv1.JSONSchemaProps, controlPlane, beside bool) {
	status, ok := schema.Properties["status"]
	if !ok || status.Properties == nil {
		return
	}
	boolean, step := apiextensionsv1.JSONSchemaProps{Type: "boolean"}, "provisioned"
	if controlPlane {
		step = "controlPlaneInitialized"
	}
	status.Properties["initialization"] = apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{step: boolean},
	}
	if beside {
		return
	}
	delete(status.Properties, "ready")
	delete(status.Properties, "initialized")
	status.Required = slices.DeleteFunc(status.Required, func(f string) bool { return f == "ready" || f == "initialized" })
	schema.Properties["status"] = status
	if _, ok := status.Properties["failureDomains"]; ok {
		status.Properties["failureDomains"] = apiextensionsv1.JSONSchemaProps{
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Required: []string{"name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"name": {Type: "string"}, "controlPlane": boolean,
				},
			}},
		}
	}
}
