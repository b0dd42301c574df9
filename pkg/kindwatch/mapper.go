// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// mapper maps kinds with a version, and delegates other calls to another RESTMapper.
type mapper struct {
	meta.RESTMapper

	resolver *Resolver
}

// NewMapper returns a RESTMapper that gets the discovery document of a group and version on first use, and then caches
// it. Negative results are not cached: the next call requests the document again.
//
// controller-runtime's mapper reads and caches all discovery documents of a cluster on first use: for a cluster with
// many definitions that is megabytes, to map the three kinds that are written there. Calls without a version, and those
// for kinds that cannot be watched, go to other, which may be that mapper. account, which may be nil, is charged with
// the cache.
func NewMapper(client ResourceLister, other meta.RESTMapper, account *limits.Account) meta.RESTMapper {
	const never = time.Nanosecond
	return &mapper{RESTMapper: other, resolver: NewResolver(ResolverOptions{
		Client: client, Account: account, MissingFor: never, ForbiddenFor: never, FailedFor: never,
	})}
}

// RESTMapping implements meta.RESTMapper. It uses the first version that is served.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) == 0 || slices.Contains(versions, "") {
		return m.RESTMapper.RESTMapping(gk, versions...)
	}
	for _, version := range versions {
		mapping, err := m.mapping(gk.WithVersion(version))
		if !IsNotServed(err) {
			return mapping, err
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
}

func (m *mapper) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	kind, err := m.resolver.Resolve(context.Background(), gvk) //nolint:forbidigo // A RESTMapper gets no context, and its client ends its requests.
	switch {
	case errors.Is(err, errNotWatchable):
		return m.RESTMapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	case err != nil:
		return nil, err
	}
	mapping := &meta.RESTMapping{GroupVersionKind: gvk, Resource: kind.GroupVersionResource(), Scope: meta.RESTScopeNamespace}
	if kind.ClusterScoped {
		mapping.Scope = meta.RESTScopeRoot
	}
	return mapping, nil
}
