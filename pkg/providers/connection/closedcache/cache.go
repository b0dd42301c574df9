// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package closedcache

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

// lastApplied is the annotation in which kubectl apply stores a copy of the object.
const lastApplied = corev1.LastAppliedConfigAnnotation

// Trim removes managed fields and the annotation of kubectl apply: no controller reads them, and they can be half of an
// object.
func Trim(in any) (any, error) {
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

// NeverCached returns the kinds whose content is never held in memory for longer than a request.
func NeverCached() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}
}

// form is the representation of an object; the cache keeps one informer for each form of a kind.
type form int

const (
	formStructured form = iota
	formUnstructured
	formMetadata
)

// Key is a kind and the form of its objects.
type Key struct {
	GVK  schema.GroupVersionKind
	form form
}

// An Index is a field index of every cluster's cache.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// Cache is a cache in which informers exist only if a controller requested them: reads without an informer fail, and
// Secrets and ConfigMaps are refused unless only their metadata is requested.
//
// Indexes are added to an informer when it is first requested. Adding them when the cluster is connected, as
// controller-runtime would, would make it impossible to connect a cluster that lacks an indexed kind.
type Cache struct {
	cache.Cache
	scheme  *runtime.Scheme
	indexes map[Key][]Index

	mu      sync.Mutex
	indexed map[Key]*sync.Mutex // held while its indexes are added
	done    map[Key]bool
}

// New returns a Cache over another one. The indexes must no longer change.
func New(inner cache.Cache, scheme *runtime.Scheme, indexes map[Key][]Index) *Cache {
	return &Cache{
		Cache: inner, scheme: scheme, indexes: indexes,
		indexed: map[Key]*sync.Mutex{}, done: map[Key]bool{},
	}
}

// GetInformer returns the informer for an object, with its indexes.
func (c *Cache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	k, err := KeyOf(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, k); err != nil {
		return nil, err
	}
	return c.Cache.GetInformer(ctx, obj, opts...)
}

// GetInformerForKind returns the informer for a kind, with its indexes.
func (c *Cache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	k := Key{GVK: gvk, form: formStructured}
	if !c.scheme.Recognizes(gvk) {
		k.form = formUnstructured
	}
	if err := c.prepare(ctx, k); err != nil {
		return nil, err
	}
	return c.Cache.GetInformerForKind(ctx, gvk, opts...)
}

// prepare refuses what is never cached and adds indexes once.
func (c *Cache) prepare(ctx context.Context, k Key) error {
	if k.form != formMetadata && k.GVK.Group == "" && (k.GVK.Kind == "Secret" || k.GVK.Kind == "ConfigMap") {
		return fmt.Errorf("cannot watch %s: only the metadata of Secrets and ConfigMaps may be watched", k.GVK.Kind)
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

	lock.Lock() // Per kind and cluster: adding an index sends a request to the API server.
	defer lock.Unlock()
	if c.isIndexed(k) {
		return nil
	}
	for _, i := range c.indexes[k] {
		if err := c.IndexField(ctx, i.Object, i.Field, i.Extract); err != nil {
			return fmt.Errorf("cannot index %s by %s: %w", k.GVK.Kind, i.Field, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[k] = true
	return nil
}

func (c *Cache) isIndexed(k Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[k]
}

// RemoveInformer removes an informer; if requested again, it is indexed again.
func (c *Cache) RemoveInformer(ctx context.Context, obj client.Object) error {
	if k, err := KeyOf(obj, c.scheme); err == nil {
		c.mu.Lock()
		delete(c.done, k)
		c.mu.Unlock()
	}
	return c.Cache.RemoveInformer(ctx, obj)
}

// KeyOf returns the key of the informer for an object.
func KeyOf(obj client.Object, scheme *runtime.Scheme) (Key, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return Key{}, err
	}
	k := Key{GVK: gvk}
	switch obj.(type) {
	case *metav1.PartialObjectMetadata:
		k.form = formMetadata
	case runtime.Unstructured:
		k.form = formUnstructured
	}
	return k, nil
}
