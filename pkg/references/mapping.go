// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Mapper maps resources to kinds. The error is a meta.NoMatchError (meta.IsNoMatchError) if the resource is not
// served.
type Mapper interface {
	// MappingFor returns the kind and the scope of a resource of exactly that group, in its version; if that is empty, in
	// the API server's preferred version.
	MappingFor(ctx context.Context, resource schema.GroupVersionResource) (*meta.RESTMapping, error)
}

// NewMapper makes a Mapper of a RESTMapper.
func NewMapper(mapper meta.RESTMapper) Mapper { return restMapper{mapper} }

type restMapper struct{ meta.RESTMapper }

// MappingFor implements Mapper. A RESTMapper treats an empty group as any group, and a group as a prefix. Here it must
// match exactly: otherwise the author of a kind could redirect a reference to ConfigMaps to their own kind.
func (m restMapper) MappingFor(_ context.Context, resource schema.GroupVersionResource) (*meta.RESTMapping, error) {
	kinds, err := m.KindsFor(resource)
	if resource.Group != "" && resource.Version == "" && err == nil {
		var preferred schema.GroupVersionKind
		preferred, err = m.KindFor(resource)
		kinds = append([]schema.GroupVersionKind{preferred}, kinds...)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the kind of %s: %w", resource, err)
	}
	for _, kind := range kinds {
		if kind.Group != resource.Group || resource.Version != "" && kind.Version != resource.Version {
			continue
		}
		mapping, err := m.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("cannot find the scope of %s: %w", resource, err)
		}
		if mapping.Resource.Resource == resource.Resource {
			return mapping, nil
		}
	}
	return nil, &meta.NoResourceMatchError{PartialResource: resource}
}
