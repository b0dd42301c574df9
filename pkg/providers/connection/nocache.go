// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errNoCache is the answer to everything that would be kept of a workload cluster without a bound.
var errNoCache = errors.New("no cache: what is in a workload cluster is watched by package kindwatch, and read live")

// noCache is the cache of a workload cluster, which keeps nothing: package kindwatch watches with bounds, and the
// client reads live.
type noCache struct{}

var _ cache.Cache = noCache{}

// Get implements client.Reader.
func (noCache) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errNoCache
}

// List implements client.Reader.
func (noCache) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errNoCache
}

// GetInformer implements cache.Informers.
func (noCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, errNoCache
}

// GetInformerForKind implements cache.Informers.
func (noCache) GetInformerForKind(
	context.Context, schema.GroupVersionKind, ...cache.InformerGetOption,
) (cache.Informer, error) {
	return nil, errNoCache
}

// RemoveInformer implements cache.Informers.
func (noCache) RemoveInformer(context.Context, client.Object) error { return nil }

// Start implements cache.Informers.
func (noCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync implements cache.Informers.
func (noCache) WaitForCacheSync(context.Context) bool { return true }

// IndexField implements client.FieldIndexer.
func (noCache) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return errNoCache
}
