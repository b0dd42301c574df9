// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"maps"
)

// CRDPath is the path of CustomResourceDefinitions.
const CRDPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// Manifest is the JSON, which is YAML, of an object.
func Manifest(apiVersion, kind, namespace, name string, rest map[string]any) string {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	obj := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	maps.Copy(obj, rest)
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err) // Made of literals.
	}
	return string(data)
}
