// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestApplyConfiguration(t *testing.T) {
	mapList := "map"
	keyed := NewSchema(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"pools": {
			Type: "array", XListType: &mapList, XListMapKeys: []string{"name"},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}}},
	}})
	const pools = `{pools: [{name: a, size: 1, region: x}, {name: b, size: 2}], region: x, mine: 1}`
	cases := map[string]struct {
		reason string
		fields string // What our manager has.
		filled []string
		schema *Schema
		want   string
	}{
		"Field":        {reason: "Only the field is applied.", filled: []string{"spec.region"}, want: `{"region":"x"}`},
		"ListWhole":    {reason: "A list that is atomic is applied whole.", filled: []string{"spec.pools[0].region"}, want: `{"pools":[{"name":"a","region":"x","size":1},{"name":"b","size":2}]}`},
		"ListByKeys":   {reason: "An element goes with its keys.", schema: keyed, filled: []string{"spec.pools[0].region"}, want: `{"pools":[{"name":"a","region":"x"}]}`},
		"KeepsEarlier": {reason: "What was filled in before stays.", fields: `{"f:spec":{"f:region":{}}}`, filled: []string{"spec.mine"}, want: `{"mine":1,"region":"x"}`},
		"KeepsElement": {
			reason: "So does what was in an element.", schema: keyed, fields: `{"f:spec":{"f:pools":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:region":{}}}}}`,
			filled: []string{"spec.pools[1].size"}, want: `{"pools":[{"name":"a","region":"x"},{"name":"b","size":2}]}`,
		},
		"KeepsList": {
			reason: "So does an atomic list.", fields: `{"f:spec":{"f:pools":{}}}`,
			filled: []string{"spec.region"}, want: `{"pools":[{"name":"a","region":"x","size":1},{"name":"b","size":2}],"region":"x"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fields := "[]"
			if tc.fields != "" {
				fields = `[{manager: m, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: ` + tc.fields + `}]`
			}
			obj := object(t, "{apiVersion: v1, kind: X, metadata: {name: a, uid: u, resourceVersion: '1', managedFields: "+fields+"}, spec: "+pools+"}")
			got, err := ApplyConfiguration(obj, Result{Object: obj, Filled: tc.filled}, "m", tc.schema)
			if err != nil {
				t.Fatal(err)
			}
			if spec := asText(t, got.Object["spec"]); spec != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, spec)
			}
			if got.GetUID() != "u" || got.GetResourceVersion() != "1" {
				t.Errorf("%s: it is not about this very object", tc.reason)
			}
		})
	}
}
