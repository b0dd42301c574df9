// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"embed"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

//go:embed fixtures/*.yaml
var fixtures embed.FS

// fixture reads what a provider shows of a resource. The files are part of the program, so that reading them cannot fail.
func fixture(name string) map[string]any {
	content, err := fixtures.ReadFile("fixtures/" + name + ".yaml")
	if err != nil {
		panic(err)
	}
	document, err := yaml.YAMLToJSON(content)
	if err != nil {
		panic(fmt.Errorf("%s: %w", name, err))
	}
	return decode(document)
}

// plain makes values of Go's own types those that unstructured objects have.
func plain(value map[string]any) map[string]any {
	document, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return decode(document)
}

func decode(document []byte) map[string]any {
	value := map[string]any{}
	if err := json.Unmarshal(document, &value); err != nil {
		panic(err)
	}
	return whole(value).(map[string]any)
}

// whole makes numbers without a fraction int64, as the API server's are when they are read.
func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			value[key] = whole(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = whole(inner)
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}

// fit gives a value the shape of a schema: an object where the schema has a list becomes a list of one, and the other way round.
func fit(value any, schema map[string]any) any {
	switch schema["type"] {
	case "array":
		items, _ := schema["items"].(map[string]any)
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for i := range list {
			list[i] = fit(list[i], items)
		}
		return list
	case "object":
		if list, ok := value.([]any); ok && len(list) > 0 {
			value = list[0]
		}
		object, ok := value.(map[string]any)
		if !ok {
			return value
		}
		properties, _ := schema["properties"].(map[string]any)
		for key, inner := range object {
			if property, ok := properties[key].(map[string]any); ok {
				object[key] = fit(inner, property)
			}
		}
		return object
	}
	return runtime.DeepCopyJSONValue(value)
}
