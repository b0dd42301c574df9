// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/references"
)

// maxGrants is how many ReferenceGrants of a namespace are looked at.
const maxGrants = 500

// grants asks the ReferenceGrants of the Gateway API.
type grants struct {
	mapper references.Mapper
	reader client.Reader
}

// Permits implements references.Grants. Where ReferenceGrants are not served, nobody permits anything.
func (g grants) Permits(ctx context.Context, from schema.GroupKind, fromNamespace string, to references.Source) (bool, error) {
	mapping, err := g.mapper.MappingFor(ctx, schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Resource: "referencegrants"})
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(mapping.GroupVersionKind.Kind + "List"))
	if err := g.reader.List(ctx, list, client.InNamespace(to.Namespace), client.Limit(maxGrants)); err != nil {
		return false, fmt.Errorf("cannot list ReferenceGrants: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].GetNamespace() == to.Namespace && grantPermits(&list.Items[i], from, fromNamespace, to) {
			return true, nil
		}
	}
	return false, nil
}

// grantPermits is whether one ReferenceGrant names both sides. A target without a name is every object of the kind.
func grantPermits(grant *unstructured.Unstructured, from schema.GroupKind, fromNamespace string, to references.Source) bool {
	return anyOf(grant, "from", func(entry map[string]any) bool {
		return entry["group"] == from.Group && entry["kind"] == from.Kind && entry["namespace"] == fromNamespace
	}) && anyOf(grant, "to", func(entry map[string]any) bool {
		name, named := entry["name"]
		return entry["group"] == to.Group && entry["kind"] == to.Kind && (!named || name == "" || name == to.Name)
	})
}

func anyOf(grant *unstructured.Unstructured, field string, is func(map[string]any) bool) bool {
	list, _, _ := unstructured.NestedFieldNoCopy(grant.Object, "spec", field)
	entries, _ := list.([]any)
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok && is(entry) {
			return true
		}
	}
	return false
}

var _ references.Grants = grants{}
