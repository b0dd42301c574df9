// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package providercrds

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// AddVersion adds the next version to a CRD of a Cluster API provider, which is stored from now on. Its status is that
// of the contract v1beta2, alone or beside that of v1beta1, and the label for that contract names it. Everything else
// is as in the version before.
func AddVersion(crd *apiextensionsv1.CustomResourceDefinition, beside bool) (name string) {
	last := &crd.Spec.Versions[len(crd.Spec.Versions)-1]
	last.Storage = false
	next := last.DeepCopy()
	number := 0
	_, _ = fmt.Sscanf(next.Name, "v1beta%d", &number)
	next.Name, next.Storage = fmt.Sprintf("v1beta%d", number+1), true
	changeContract(next.Schema.OpenAPIV3Schema, strings.HasSuffix(crd.Spec.Names.Kind, "ControlPlane"), beside)
	crd.Spec.Versions = append(crd.Spec.Versions, *next)
	crd.Labels["cluster.x-k8s.io/v1beta2"] = next.Name
	return next.Name
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
}
