// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definitions tells a source when the CustomResourceDefinitions of its group change in one cluster. It shares the
// metadata-only informer that the cluster's cache has for them.
type definitions struct {
	group string
	// changed has an item when a definition of the group has changed since it was received from last.
	changed chan struct{}

	informer cache.Informer
	reg      toolscache.ResourceEventHandlerRegistration

	mu sync.Mutex
	// plural is the resource that is watched, or "" while the source is parked and any definition may be the one.
	plural string
	// gone says that the definition of the resource was deleted or replaced.
	gone bool
}

func newDefinitions(group string) *definitions {
	return &definitions{group: group, changed: make(chan struct{}, 1)}
}

// definitionObject says the kind that is watched: metadata only, since a definition can be large.
func definitionObject() *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	return obj
}

// start watches the definitions, unless they are watched already. It may be called again if it did not work. No
// definition can be of a group without a dot, since the server refuses it.
func (d *definitions) start(ctx context.Context, c cache.Cache) {
	if d.reg != nil && !d.informer.IsStopped() || !strings.Contains(d.group, ".") {
		return
	}
	informer, err := c.GetInformer(ctx, definitionObject(), cache.BlockUntilSynced(false))
	if err != nil {
		return
	}
	reg, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { d.observe(o, false) },
		UpdateFunc: func(o, n any) { d.observe(n, uid(o) != uid(n)) },
		DeleteFunc: func(o any) { d.observe(o, true) },
	})
	if err != nil {
		return
	}
	d.informer, d.reg = informer, reg
}

// stop ends what start has begun.
func (d *definitions) stop() {
	if d.reg != nil {
		_ = d.informer.RemoveEventHandler(d.reg)
	}
}

// follow says which resource matters from now on; "" for any of the group.
func (d *definitions) follow(plural string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plural, d.gone = plural, false
}

// takeGone tells whether the definition of the resource is gone, once.
func (d *definitions) takeGone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	gone := d.gone
	d.gone = false
	return gone
}

func (d *definitions) observe(o any, gone bool) {
	if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	obj, ok := o.(client.Object)
	if !ok {
		return
	}
	plural, group, _ := strings.Cut(obj.GetName(), ".")
	if group != d.group {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.plural != "" && d.plural != plural {
		return
	}
	if d.plural != "" && gone {
		d.gone = true
	}
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

func uid(o any) string {
	if obj, ok := o.(client.Object); ok {
		return string(obj.GetUID())
	}
	return ""
}
