// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxGrants is the maximum number of ReferenceGrants read per namespace.
const maxGrants = 500

// ReferenceGrantResource is the Gateway API's resource of ReferenceGrants, in the served version.
var ReferenceGrantResource = schema.GroupVersionResource{ //nolint:gochecknoglobals // A constant.
	Group: "gateway.networking.k8s.io", Resource: "referencegrants",
}

// Lister lists objects. A client.Reader is one.
type Lister interface {
	List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error
}

// ReferenceGrants evaluates the ReferenceGrants of the Gateway API, read once per namespace. It is for one Request, and
// not safe for concurrent use.
type ReferenceGrants struct {
	mapper Mapper
	lister Lister

	// mapping is the cached mapping of ReferenceGrants, or its error.
	mapping *meta.RESTMapping
	err     error

	lists map[string]*unstructured.UnstructuredList
}

var _ Grants = &ReferenceGrants{}

// NewReferenceGrants returns the ReferenceGrants that a lister has. Where they are not served, they permit nothing.
func NewReferenceGrants(mapper Mapper, lister Lister) *ReferenceGrants {
	return &ReferenceGrants{mapper: mapper, lister: lister}
}

// Kind returns the kind of ReferenceGrants in the cluster. The error is a meta.NoMatchError if they are not served.
func (g *ReferenceGrants) Kind(ctx context.Context) (*meta.RESTMapping, error) {
	if g.mapping == nil && g.err == nil {
		g.mapping, g.err = g.mapper.MappingFor(ctx, ReferenceGrantResource)
	}
	return g.mapping, g.err
}

// Permits implements Grants.
func (g *ReferenceGrants) Permits(ctx context.Context, from schema.GroupKind, fromNamespace string, to Source) (bool, error) {
	mapping, err := g.Kind(ctx)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	list, err := g.list(ctx, mapping.GroupVersionKind, to.Namespace)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Items, func(grant unstructured.Unstructured) bool {
		return grant.GetNamespace() == to.Namespace && grantPermits(&grant, from, fromNamespace, to)
	}), nil
}

// list returns the ReferenceGrants of a namespace.
func (g *ReferenceGrants) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) (*unstructured.UnstructuredList, error) {
	if known, ok := g.lists[namespace]; ok {
		return known, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := g.lister.List(ctx, list, client.InNamespace(namespace), client.Limit(maxGrants)); err != nil {
		return nil, fmt.Errorf("cannot list ReferenceGrants: %w", err)
	}
	if g.lists == nil {
		g.lists = map[string]*unstructured.UnstructuredList{}
	}
	g.lists[namespace] = list
	return list, nil
}

// grantPermits reports whether a ReferenceGrant names both sides. A target without a name means every object of the
// kind.
func grantPermits(grant *unstructured.Unstructured, from schema.GroupKind, fromNamespace string, to Source) bool {
	return anyEntry(grant, "from", func(entry map[string]any) bool {
		return isKind(entry, from) && entry["namespace"] == fromNamespace
	}) && anyEntry(grant, "to", func(entry map[string]any) bool {
		name, named := entry["name"]
		return isKind(entry, to.GroupKind()) && (!named || name == "" || name == to.Name)
	})
}

// isKind reports whether an entry of a ReferenceGrant is about a kind, by any of its names.
func isKind(entry map[string]any, gk schema.GroupKind) bool {
	group, grouped := entry["group"].(string)
	kind, _ := entry["kind"].(string)
	return grouped && CanonicalKind(schema.GroupKind{Group: group, Kind: kind}) == CanonicalKind(gk)
}

func anyEntry(grant *unstructured.Unstructured, field string, is func(map[string]any) bool) bool {
	list, _, _ := unstructured.NestedFieldNoCopy(grant.Object, "spec", field)
	entries, _ := list.([]any)
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok && is(entry) {
			return true
		}
	}
	return false
}
