// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package providercrds_test

import (
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/providercrds"
)

func TestLoadEveryCRD(t *testing.T) {
	kinds := providercrds.All()
	definitions, err := providercrds.Load(t.Context(), kinds...)
	if err != nil {
		t.Fatal(err)
	}
	for i, definition := range definitions {
		if definition.Spec.Group != kinds[i].Group || definition.Spec.Names.Kind != kinds[i].Kind {
			t.Errorf("CRD %d: want %s, got %s", i, kinds[i], definition.Name)
		}
		if len(definition.Spec.Versions) != 1 || !definition.Spec.Versions[0].Storage || !definition.Spec.Versions[0].Served {
			t.Errorf("%s: want one version, got %d", definition.Name, len(definition.Spec.Versions))
			continue
		}
		if strings.HasSuffix(definition.Spec.Group, ".cluster.x-k8s.io") &&
			definition.Labels["cluster.x-k8s.io/v1beta1"] != definition.Spec.Versions[0].Name {
			t.Errorf("%s: Cluster API core cannot find the version that fulfils its contract: %v", definition.Name, definition.Labels)
		}
	}
}

func TestManagedResourcesHavePolicies(t *testing.T) {
	kinds := append(providercrds.ManagedResources(), providercrds.ModernManagedResources()...)
	definitions, err := providercrds.Load(t.Context(), kinds...)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		policies, ok := spec.Properties["managementPolicies"]
		if !ok || policies.Default == nil || string(policies.Default.Raw) != `["*"]` {
			t.Errorf("%s: the schema that the safety of imports rests on has changed: %+v", definition.Name, policies)
		}
	}
}

func TestLoadRefusesUnknownKinds(t *testing.T) {
	if _, err := providercrds.Load(t.Context(), schema.GroupKind{Group: "example.org", Kind: "Thing"}); err == nil {
		t.Error("Load(Thing.example.org): want an error")
	}
}

func TestWrite(t *testing.T) {
	paths, err := providercrds.Write(t.Context(), t.TempDir(), providercrds.ClusterAPI()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(content, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
			t.Errorf("%s is not a CRD: %v", path, err)
		}
	}
}
