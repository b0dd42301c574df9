// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/references"
)

// watchedKind is the metadata watch of one object, which reports its changes. A Role in the namespace permits it, also
// one for that name only.
func watchedKind(s references.Source) kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: s.GroupVersionKind, Resource: s.Resource, ClusterScoped: s.Namespace == "", MetadataOnly: true, OnlyAnnotations: kindwatch.NoAnnotations,
		Namespace: s.Namespace, FieldSelector: fields.Set{"metadata.name": s.Name}.String(),
	}
}

// watchOfGrants is the watch of the ReferenceGrants of a namespace.
func watchOfGrants(mapping *meta.RESTMapping, namespace string) kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: mapping.GroupVersionKind, Resource: mapping.Resource.Resource, MetadataOnly: true, OnlyAnnotations: kindwatch.NoAnnotations,
		Namespace: namespace,
	}
}

// watchOfDefinition is the watch of the definition of a resource that is not served.
func watchOfDefinition(gr schema.GroupResource) kindwatch.Kind {
	kind := multicluster.DefinitionNamed(gr.String())
	kind.OnlyAnnotations = kindwatch.NoAnnotations
	return kind
}

// isDependency reports whether a watch is of what objects with references depend on, and not of those objects.
func isDependency(kind kindwatch.Kind) bool { return kind.MetadataOnly }

// isDefinition reports whether a watch is that of a definition.
func isDefinition(kind kindwatch.Kind) bool { return kind.GroupKind() == definitionKind.GroupKind() }
