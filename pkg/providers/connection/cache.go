// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// lastApplied is what kubectl apply keeps the whole object in once more.
const lastApplied = corev1.LastAppliedConfigAnnotation

// trim removes what no controller reads and what can be half of an object: managed fields and the annotation of
// kubectl apply.
func trim(in any) (any, error) {
	obj, err := meta.Accessor(in)
	if err != nil {
		return in, nil //nolint:nilerr // Not an object: a tombstone, for example.
	}
	if obj.GetManagedFields() != nil {
		obj.SetManagedFields(nil)
	}
	if a := obj.GetAnnotations(); a[lastApplied] != "" {
		kept := make(map[string]string, len(a))
		for k, v := range a {
			if k != lastApplied {
				kept[k] = v
			}
		}
		obj.SetAnnotations(kept)
	}
	return in, nil
}

// neverCached returns the kinds whose content is never held in memory for longer than a request.
func neverCached() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}
}

// form is how an object is held; the cache keeps one informer for each form of a kind.
type form int

const (
	formStructured form = iota
	formUnstructured
	formMetadata
)

type informerKey struct {
	gvk  schema.GroupVersionKind
	form form
}

// fieldIndex is an index that every cluster's cache has.
type fieldIndex struct {
	obj     client.Object
	field   string
	extract client.IndexerFunc
}

// closedCache is a cache in which informers exist because a controller asked for them, and for no other reason: reads
// of what has no informer fail, and Secrets and ConfigMaps are refused unless only their metadata are asked for.
//
// Indexes are added to an informer when it is first asked for. To add them when the cluster is connected, as
// controller-runtime would, makes every cluster that lacks one of the indexed kinds impossible to connect.
type closedCache struct {
	cache.Cache
	scheme  *runtime.Scheme
	indexes map[informerKey][]fieldIndex

	mu      sync.Mutex
	indexed map[informerKey]*sync.Mutex // held while its indexes are added
	done    map[informerKey]bool
}

func newClosedCache(inner cache.Cache, scheme *runtime.Scheme, indexes map[informerKey][]fieldIndex) *closedCache {
	return &closedCache{
		Cache: inner, scheme: scheme, indexes: indexes,
		indexed: map[informerKey]*sync.Mutex{}, done: map[informerKey]bool{},
	}
}

// GetInformer returns the informer for an object, with its indexes.
func (c *closedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	k, err := keyOf(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, k); err != nil {
		return nil, err
	}
	return c.Cache.GetInformer(ctx, obj, opts...)
}

// GetInformerForKind returns the informer for a kind, with its indexes.
func (c *closedCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	k := informerKey{gvk: gvk, form: formStructured}
	if !c.scheme.Recognizes(gvk) {
		k.form = formUnstructured
	}
	if err := c.prepare(ctx, k); err != nil {
		return nil, err
	}
	return c.Cache.GetInformerForKind(ctx, gvk, opts...)
}

// prepare refuses what is never cached and adds indexes once.
func (c *closedCache) prepare(ctx context.Context, k informerKey) error {
	if k.form != formMetadata && k.gvk.Group == "" && (k.gvk.Kind == "Secret" || k.gvk.Kind == "ConfigMap") {
		return fmt.Errorf("cannot watch %s: only the metadata of Secrets and ConfigMaps may be watched", k.gvk.Kind)
	}
	if len(c.indexes[k]) == 0 {
		return nil
	}
	c.mu.Lock()
	lock, ok := c.indexed[k]
	if !ok {
		lock = &sync.Mutex{}
		c.indexed[k] = lock
	}
	c.mu.Unlock()

	lock.Lock() // Of this kind in this cluster only: adding an index asks the API server what serves the kind.
	defer lock.Unlock()
	if c.isIndexed(k) {
		return nil
	}
	for _, i := range c.indexes[k] {
		if err := c.IndexField(ctx, i.obj, i.field, i.extract); err != nil {
			return fmt.Errorf("cannot index %s by %s: %w", k.gvk.Kind, i.field, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[k] = true
	return nil
}

func (c *closedCache) isIndexed(k informerKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[k]
}

// RemoveInformer removes an informer; should it come back, it is indexed anew.
func (c *closedCache) RemoveInformer(ctx context.Context, obj client.Object) error {
	if k, err := keyOf(obj, c.scheme); err == nil {
		c.mu.Lock()
		delete(c.done, k)
		c.mu.Unlock()
	}
	return c.Cache.RemoveInformer(ctx, obj)
}

func keyOf(obj client.Object, scheme *runtime.Scheme) (informerKey, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return informerKey{}, err
	}
	k := informerKey{gvk: gvk}
	switch obj.(type) {
	case *metav1.PartialObjectMetadata:
		k.form = formMetadata
	case runtime.Unstructured:
		k.form = formUnstructured
	}
	return k, nil
}
