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

// NewInformer is a cache.Options.NewInformer for clusters that may be disengaged. It is NewSharedIndexInformer, but its
// watches leave no goroutine behind.
//
// controller-runtime v0.24.1 filters the watches of unstructured and metadata-only informers through apimachinery's
// watch.Filter, whose goroutine blocks for ever if an event is pending when the watch is stopped. That is usual at the
// end of an engagement: it ends the request and the reader at once, so the request's error has no reader
// (kubernetes/kubernetes#113254; the fix kubernetes/kubernetes#139321 was rejected, since the reader should drain the
// channel). This one drains it.
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

// drainedWatch receives events after Stop, so that their sender does not block.
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
