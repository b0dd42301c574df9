// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// events translates what an informer says for the handler of the source. Nothing gets through once ctx has ended.
func (s *lazySource[R]) events(
	ctx context.Context, q workqueue.TypedRateLimitingInterface[R],
) toolscache.ResourceEventHandlerDetailedFuncs {
	passes := predicate.And(s.options.predicates...)
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			obj, ok := o.(client.Object)
			e := event.CreateEvent{Object: obj, IsInInitialList: initial}
			if ok && ctx.Err() == nil && passes.Create(e) {
				s.handler.Create(ctx, e, q)
			}
		},
		UpdateFunc: func(o, n any) {
			was, wasOK := o.(client.Object)
			is, isOK := n.(client.Object)
			e := event.UpdateEvent{ObjectOld: was, ObjectNew: is}
			if wasOK && isOK && ctx.Err() == nil && passes.Update(e) {
				s.handler.Update(ctx, e, q)
			}
		},
		DeleteFunc: func(o any) {
			tombstone, unknown := o.(toolscache.DeletedFinalStateUnknown)
			if unknown {
				o = tombstone.Obj
			}
			obj, ok := o.(client.Object)
			e := event.DeleteEvent{Object: obj, DeleteStateUnknown: unknown}
			if ok && ctx.Err() == nil && passes.Delete(e) {
				s.handler.Delete(ctx, e, q)
			}
		},
	}
}
