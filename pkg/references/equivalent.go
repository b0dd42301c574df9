// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import "k8s.io/apimachinery/pkg/runtime/schema"

// equivalents are the kinds that API servers serve in two groups: an object of the one is the same object of the other.
// An API server knows them by its runtime.EquivalentResourceRegistry, but does not publish them.
var equivalents = [...]struct { //nolint:gochecknoglobals // A constant.
	kind, resource   string
	group, canonical string
}{
	{kind: "Event", resource: "events", group: "events.k8s.io", canonical: ""},
	{kind: "Ingress", resource: "ingresses", group: "extensions", canonical: "networking.k8s.io"},
}

// CanonicalKind returns the same kind for a kind in any of its groups.
func CanonicalKind(gk schema.GroupKind) schema.GroupKind {
	for _, e := range equivalents {
		if e.kind == gk.Kind && e.group == gk.Group {
			gk.Group = e.canonical
		}
	}
	return gk
}

// sameResources returns a resource and its equivalents in other groups.
func sameResources(gr schema.GroupResource) []schema.GroupResource {
	out := []schema.GroupResource{gr}
	for _, e := range equivalents {
		switch {
		case e.resource != gr.Resource:
		case e.group == gr.Group:
			out = append(out, schema.GroupResource{Group: e.canonical, Resource: e.resource})
		case e.canonical == gr.Group:
			out = append(out, schema.GroupResource{Group: e.group, Resource: e.resource})
		}
	}
	return out
}
