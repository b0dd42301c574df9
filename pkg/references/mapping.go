// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Mapper says which kind a resource is. The error is a meta.NoMatchError (meta.IsNoMatchError) if the resource is not
// served.
type Mapper interface {
	// MappingFor returns the kind and the scope of a resource of exactly that group, in its version; in the version that
	// the API server prefers if that is empty.
	MappingFor(ctx context.Context, resource schema.GroupVersionResource) (*meta.RESTMapping, error)
}

// NewMapper makes a Mapper of a RESTMapper.
func NewMapper(mapper meta.RESTMapper) Mapper { return restMapper{mapper} }

type restMapper struct{ meta.RESTMapper }

// MappingFor implements Mapper. A RESTMapper takes an empty group for any group, and a group for the beginning of one.
// Here it is the group that was asked for or none: else whoever defines a kind could have a reference to ConfigMaps
// lead to his.
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
