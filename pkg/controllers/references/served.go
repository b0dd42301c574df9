// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
)

// How long answers about what a cluster serves are cached, and how many.
const (
	servedFor  = time.Minute
	maxAnswers = 256
)

// changingFor is how long after a definition's change an API server may not yet serve the new state.
const changingFor = 30 * time.Second

// served resolves an API server's names for resources. It requests the document of a group and of a version, never of
// everything.
type served struct {
	client  discovery.DiscoveryInterface
	answers *cache.LRUExpireCache

	// changing has the groups of recently changed definitions.
	changing *cache.LRUExpireCache
}

func newServed(client discovery.DiscoveryInterface, c clock.PassiveClock) *served {
	return &served{
		client: client, answers: cache.NewLRUExpireCacheWithClock(maxAnswers, c), changing: cache.NewLRUExpireCacheWithClock(maxAnswers, c),
	}
}

// forget drops the cached answers about a group.
func (s *served) forget(group string) {
	s.answers.RemoveAll(func(key any) bool {
		gvr, ok := key.(schema.GroupVersionResource)
		return ok && gvr.Group == group
	})
}

// changed records that a definition of a group changed.
func (s *served) changed(group string) {
	s.forget(group)
	s.changing.Add(group, true, changingFor)
}

// isChanging reports whether a definition of a group changed recently.
func (s *served) isChanging(group string) bool {
	_, changing := s.changing.Get(group)
	return changing
}

// MappingFor implements references.Mapper.
func (s *served) MappingFor(ctx context.Context, gvr schema.GroupVersionResource) (*meta.RESTMapping, error) {
	if known, ok := s.answers.Get(gvr); ok {
		return known.(*meta.RESTMapping), nil //nolint:forcetypeassert // Nothing else is put there.
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cannot discover the resources of %s: %w", gvr.GroupVersion(), err)
	}
	requested := gvr
	if gvr.Version == "" {
		var err error
		if gvr.Version, err = s.preferred(ctx, gvr); err != nil {
			return nil, err
		}
	}
	path := "/apis/" + gvr.GroupVersion().String()
	if gvr.Group == "" {
		path = "/api/" + gvr.Version
	}
	// The client's own method for this takes no context.
	list := &metav1.APIResourceList{}
	err := s.client.RESTClient().Get().AbsPath(path).Do(ctx).Into(list)
	if apierrors.IsNotFound(err) {
		return nil, &meta.NoResourceMatchError{PartialResource: requested}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot discover the resources of %s: %w", gvr.GroupVersion(), err)
	}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if r.Name != gvr.Resource {
			continue
		}
		mapping := &meta.RESTMapping{Resource: gvr, GroupVersionKind: gvr.GroupVersion().WithKind(r.Kind), Scope: meta.RESTScopeRoot}
		if r.Namespaced {
			mapping.Scope = meta.RESTScopeNamespace
		}
		s.answers.Add(requested, mapping, servedFor)
		return mapping, nil
	}
	return nil, &meta.NoResourceMatchError{PartialResource: requested}
}

// preferred is the version of a group that the API server prefers.
func (s *served) preferred(ctx context.Context, gvr schema.GroupVersionResource) (string, error) {
	if gvr.Group == "" {
		return "v1", nil
	}
	data, err := s.client.RESTClient().Get().AbsPath("/apis/"+gvr.Group).SetHeader("Accept", "application/json").DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return "", &meta.NoResourceMatchError{PartialResource: gvr}
	}
	if err != nil {
		return "", fmt.Errorf("cannot discover the versions of %s: %w", gvr.Group, err)
	}
	var group metav1.APIGroup
	if err := json.Unmarshal(data, &group); err != nil {
		return "", fmt.Errorf("cannot decode the versions of %s: %w", gvr.Group, err)
	}
	version := group.PreferredVersion.Version
	if len(validation.IsDNS1035Label(version)) > 0 {
		return "", &meta.NoResourceMatchError{PartialResource: gvr}
	}
	return version, nil
}
