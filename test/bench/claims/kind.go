// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
)

// Group and Version of all kinds, the namespace of the claims, and the namespace of the hub to which they are carried.
const (
	Group     = "bench.example.org"
	Version   = "v1alpha1"
	Namespace = "default"
	Target    = "bar"
)

// Kind is the claim kind of one run. Each run has its own, so that no run finds objects that another left behind; all
// have the same schema.
type Kind struct{ Plural, Name string }

// KindOfRun is the nth kind.
func KindOfRun(n int) Kind {
	return Kind{Plural: fmt.Sprintf("widget%ds", n), Name: fmt.Sprintf("Widget%d", n)}
}

// CRDName is the name of the kind's CRD, and of kube-bind's objects about it.
func (k Kind) CRDName() string { return k.Plural + "." + Group }

// Collection is the path of the objects of the kind in a namespace, or in all namespaces.
func (k Kind) Collection(in string) string {
	if in == "" {
		return "/apis/" + Group + "/" + Version + "/" + k.Plural
	}
	return "/apis/" + Group + "/" + Version + "/namespaces/" + in + "/" + k.Plural
}

// Claim is the JSON of a claim: the fields that a person writes, and some more.
func (k Kind) Claim(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"%s","metadata":{"name":"%s","labels":{"app.kubernetes.io/name":"shop","team":"a"}},`+
		`"spec":{"version":"8","storageGB":20,"parameters":{"size":"small","region":"eu-1","backup":"daily"},`+
		`"compositionSelector":{"matchLabels":{"provider":"example"}}}}`, Group, Version, k.Name, name)
}

// Status is the JSON of a patch as the hub's provisioner would send it.
func Status() []byte {
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
	return `[{"name":"` + Version + `","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{` +
		`"spec":{"type":"object","required":["version"],"properties":{` + text("version") + `,"storageGB":{"type":"integer"},` +
		`"parameters":{"type":"object","additionalProperties":{"type":"string"}},` +
		`"compositionSelector":{"type":"object","properties":{"matchLabels":{"type":"object","additionalProperties":{"type":"string"}}}}}},` +
		`"status":{"type":"object","properties":{` + text("address") + `,"conditions":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],` +
		`"items":{"type":"object","required":["type","status"],"properties":{` +
		text("type", "status", "reason", "message", "lastTransitionTime") + `,"observedGeneration":{"type":"integer"}}}}}}}}}}]`
}

// Definition is what a CRD and kube-bind's APIServiceExport have in common.
func (k Kind) Definition() map[string]any {
	var parsed any
	if err := json.Unmarshal([]byte(versions()), &parsed); err != nil {
		panic(err) // A constant.
	}
	return map[string]any{
		"group": Group, "scope": "Namespaced", "versions": parsed,
		"names": map[string]any{"kind": k.Name, "listKind": k.Name + "List", "plural": k.Plural, "singular": strings.ToLower(k.Name)},
	}
}

// CRD is the definition for an API server.
func (k Kind) CRD() string {
	return apiserver.Manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", k.CRDName(), map[string]any{"spec": k.Definition()})
}
