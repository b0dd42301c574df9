// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// NewInformer is for cache.Options.NewInformer of a cluster that comes and goes. It is NewSharedIndexInformer, but for
// its watches leaving no goroutine behind.
//
// controller-runtime v0.24.1 filters the watches of unstructured and metadata-only informers through apimachinery's
// watch.Filter, whose goroutine blocks for ever if an event is under way when the watch is stopped. The end of an
// engagement is such a case more often than not: it ends the request and the reader at once, and the error of the one
// has no reader any more (kubernetes/kubernetes#113254; the fix kubernetes/kubernetes#139321 was refused, since it is
// for the reader to drain the channel). This one drains it.
func NewInformer(
	lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	if l, ok := lw.(*toolscache.ListWatch); ok && l.WatchFuncWithContext != nil {
		drained := *l
		drained.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := l.WatchFuncWithContext(ctx, o)
			if err != nil {
				return nil, err
			}
			return &drainedWatch{Interface: w}, nil
		}
		lw = &drained
	}
	return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
}

// drainedWatch receives what comes after Stop, so that whoever sends it gets on.
type drainedWatch struct {
	watch.Interface
	once sync.Once
}

// Stop implements watch.Interface.
func (w *drainedWatch) Stop() {
	w.Interface.Stop()
	w.once.Do(func() {
		go func() {
			for range w.ResultChan() { //nolint:revive // What comes is of no interest.
			}
		}()
	})
}
