// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestKubeStateMetricsReadsWhatThereIs compares the paths of the configuration of kube-state-metrics with the schemas
// of our CRDs: the configuration has all kinds, and no path that the schemas do not have.
func TestKubeStateMetricsReadsWhatThereIs(t *testing.T) {
	type paths map[string][]string
	var config struct {
		Kind string
		Spec struct {
			Resources []struct {
				GroupVersionKind struct{ Group, Version, Kind string }
				MetricNamePrefix string
				LabelsFromPath   paths
				Metrics          []struct {
					Name, Help string
					Each       struct {
						Type  string
						Gauge struct {
							Path, ValueFrom []string
							LabelsFromPath  paths
						}
					}
				}
			}
		}
	}
	manifests := files(t, ".yaml")
	text := manifests["config/kube-state-metrics/custom-resource-state.yaml"]
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*apiextensionsv1.JSONSchemaProps{}
	for path, manifest := range manifests {
		if !strings.HasPrefix(path, "config/crd/bases/") {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(manifest), &crd); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, v := range crd.Spec.Versions {
			schema := v.Schema.OpenAPIV3Schema
			schema.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"name": {Type: "string"}, "namespace": {Type: "string"}, "creationTimestamp": {Type: "string"},
			}}
			schemas[crd.Spec.Group+"/"+v.Name+"/"+crd.Spec.Names.Kind] = schema
		}
	}
	covered := map[string]bool{}
	for _, r := range config.Spec.Resources {
		kind := r.GroupVersionKind.Group + "/" + r.GroupVersionKind.Version + "/" + r.GroupVersionKind.Kind
		covered[kind] = true
		schema := schemas[kind]
		if schema == nil {
			t.Errorf("there is no CRD of %s", kind)
			continue
		}
		follow := func(from *apiextensionsv1.JSONSchemaProps, path []string) *apiextensionsv1.JSONSchemaProps {
			at := from
			for _, field := range path {
				if at.Type == "array" {
					at = at.Items.Schema
				}
				next, exists := at.Properties[field]
				if !exists {
					t.Errorf("%s: %v leads nowhere: there is no %q", kind, path, field)
					return nil
				}
				at = &next
			}
			return at
		}
		for _, path := range r.LabelsFromPath {
			follow(schema, path)
		}
		names := map[string]bool{}
		for _, m := range r.Metrics {
			if m.Name == "" || m.Help == "" || m.Each.Type != "Gauge" || names[m.Name] {
				t.Errorf("%s: the metric %q is there twice, or lacks a help or a type", kind, m.Name)
			}
			names[m.Name] = true
			each := follow(schema, m.Each.Gauge.Path)
			if each == nil {
				continue
			}
			if each.Type == "array" {
				each = each.Items.Schema
			}
			for _, path := range m.Each.Gauge.LabelsFromPath {
				follow(each, path)
			}
			value := follow(each, m.Each.Gauge.ValueFrom)
			if value != nil && !slices.Contains([]string{"integer", "number", "boolean", "string"}, value.Type) {
				t.Errorf("%s: %s is a value of the type %q", kind, m.Name, value.Type)
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(schemas)) {
		if !covered[kind] {
			t.Errorf("the configuration lacks %s", kind)
		}
	}
}
