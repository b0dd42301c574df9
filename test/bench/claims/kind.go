// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
)

const (
	group     = "bench.example.org"
	version   = "v1alpha1"
	namespace = "default"
	target    = "bar"
)

// kind is the claim kind of one run. Each run has its own, so that none meets what another left behind; all have the same
// schema.
type kind struct{ plural, name string }

func kindOfRun(n int) kind {
	return kind{plural: fmt.Sprintf("widget%ds", n), name: fmt.Sprintf("Widget%d", n)}
}

// crdName is the name of the kind's CRD, and of kube-bind's objects about it.
func (k kind) crdName() string { return k.plural + "." + group }

// collection is the path of the kind in a namespace, or of all of the kind.
func (k kind) collection(in string) string {
	if in == "" {
		return "/apis/" + group + "/" + version + "/" + k.plural
	}
	return "/apis/" + group + "/" + version + "/namespaces/" + in + "/" + k.plural
}

// claim is the JSON of a claim: what a person writes, and some more.
func (k kind) claim(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"%s","metadata":{"name":"%s","labels":{"app.kubernetes.io/name":"shop","team":"a"}},`+
		`"spec":{"version":"8","storageGB":20,"parameters":{"size":"small","region":"eu-1","backup":"daily"},`+
		`"compositionSelector":{"matchLabels":{"provider":"example"}}}}`, group, version, k.name, name)
}

// status is the JSON of a patch as the hub's provisioner would make it.
func status() []byte {
	return []byte(`{"status":{"address":"10.0.0.1:3306","conditions":[` +
		`{"type":"Synced","status":"True","reason":"ReconcileSuccess","lastTransitionTime":"2026-01-01T00:00:00Z"},` +
		`{"type":"Ready","status":"True","reason":"Available","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
}

// versions is the part of the definition that both programs get: the field spec.versions of a CRD.
func versions() string {
	text := func(fields ...string) string {
		properties := make([]string, 0, len(fields))
		for _, f := range fields {
			properties = append(properties, fmt.Sprintf(`"%s":{"type":"string"}`, f))
		}
		return strings.Join(properties, ",")
	}
	return `[{"name":"` + version + `","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{` +
		`"spec":{"type":"object","required":["version"],"properties":{` + text("version") + `,"storageGB":{"type":"integer"},` +
		`"parameters":{"type":"object","additionalProperties":{"type":"string"}},` +
		`"compositionSelector":{"type":"object","properties":{"matchLabels":{"type":"object","additionalProperties":{"type":"string"}}}}}},` +
		`"status":{"type":"object","properties":{` + text("address") + `,"conditions":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],` +
		`"items":{"type":"object","required":["type","status"],"properties":{` +
		text("type", "status", "reason", "message", "lastTransitionTime") + `,"observedGeneration":{"type":"integer"}}}}}}}}}}]`
}

// definition is what a CRD and kube-bind's APIServiceExport have in common.
func (k kind) definition() map[string]any {
	var parsed any
	if err := json.Unmarshal([]byte(versions()), &parsed); err != nil {
		panic(err) // A constant.
	}
	return map[string]any{
		"group": group, "scope": "Namespaced", "versions": parsed,
		"names": map[string]any{"kind": k.name, "listKind": k.name + "List", "plural": k.plural, "singular": strings.ToLower(k.name)},
	}
}

func (k kind) crd() string {
	return apiserver.Manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", k.crdName(), map[string]any{"spec": k.definition()})
}
