// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// answer is what a cluster says about a kind.
type answer int

const (
	// answerNone: the cluster could not be asked.
	answerNone answer = iota
	// answerServed: there is such a kind.
	answerServed
	// answerMissing: there is no such kind.
	answerMissing
)

// run watches the kind whenever it is served, until ctx ends.
func (s *lazySource[R]) run(ctx context.Context, q workqueue.TypedRateLimitingInterface[R]) {
	h := s.makeHandler(s.name, s.cluster)
	if h == nil {
		s.markSynced()
		return
	}
	s.handler = handler.WithLowPriorityWhenUnchanged(h)

	defs := newDefinitions(s.gvk.Group)
	defer defs.stop()
	backoff := s.quick()
	for ctx.Err() == nil {
		defs.start(ctx, s.cluster.GetCache())
		switch s.ask(ctx) {
		case answerServed:
			switch s.serve(ctx, q, defs) {
			case endNotBegun:
			case endStopped:
				backoff = s.quick()
			case endGone:
				s.report(ctx, false)
				// The server may go on to serve the kind for a moment; asking it at once would start an informer in vain.
				backoff = wait.Backoff{Duration: s.options.slowRetry, Jitter: 1}
			}
		case answerMissing:
			s.report(ctx, false)
			s.markSynced()
		case answerNone:
		}
		t := s.options.clock.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
		case <-t.C():
		case <-defs.changed:
			backoff = s.quick()
		}
		t.Stop()
	}
}

// quick is the back-off with which a source starts, and with which it goes on after something has happened.
func (s *lazySource[R]) quick() wait.Backoff {
	return wait.Backoff{Duration: s.options.quickRetry, Factor: 2, Jitter: 0.5, Steps: 20, Cap: s.options.slowRetry}
}

// ask finds out whether the cluster serves the kind. The RESTMapper alone cannot tell, for it remembers what it has seen
// once, and an informer alone cannot either: it would ask for a missing kind for ever.
func (s *lazySource[R]) ask(ctx context.Context) answer {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(s.gvk.GroupVersion().WithKind(s.gvk.Kind + "List"))
	err := s.cluster.GetAPIReader().List(ctx, list, client.Limit(1))
	switch {
	case err == nil:
		return answerServed
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return answerMissing
	case apierrors.IsForbidden(err):
		// The RESTMapper knows the kind, else the server would not have been asked. Whether this cache may watch it, in
		// some namespaces perhaps, is for the informer to find out.
		return answerServed
	default:
		return answerNone
	}
}

// end says why a source does not deliver events any more.
type end int

const (
	// endNotBegun: there was no informer to deliver them.
	endNotBegun end = iota
	// endStopped: ctx has ended, or somebody else has stopped the informer.
	endStopped
	// endGone: the kind is not served any more.
	endGone
)

// serve delivers the events of the kind for as long as it can.
func (s *lazySource[R]) serve(ctx context.Context, q workqueue.TypedRateLimitingInterface[R], defs *definitions) end {
	informer, err := s.cluster.GetCache().GetInformer(ctx, s.obj, cache.BlockUntilSynced(false))
	if err != nil {
		return endNotBegun
	}
	defs.follow(s.plural())
	defer defs.follow("")
	reg, err := informer.AddEventHandler(s.events(ctx, q))
	if err != nil {
		return endNotBegun // It has been stopped meanwhile.
	}
	defer func() { _ = informer.RemoveEventHandler(reg) }()
	s.report(ctx, true)

	synced := reg.HasSyncedChecker().Done()
	// Informers do not tell anybody when they are stopped, and not every cluster lets its definitions be watched.
	look := s.options.clock.NewTicker(wait.Jitter(s.options.slowRetry, 1))
	defer look.Stop()
	for {
		gone := false
		select {
		case <-ctx.Done():
			return endStopped
		case <-synced:
			s.markSynced()
			synced = nil
		case <-look.C():
			defs.start(ctx, s.cluster.GetCache())
			gone = s.ask(ctx) == answerMissing
		case <-defs.changed:
			gone = defs.takeGone() || s.ask(ctx) == answerMissing
		}
		switch {
		case gone:
			s.bury(ctx, q, informer)
			return endGone
		case informer.IsStopped():
			s.bury(ctx, q, informer) // Only another source that has found the kind gone does that.
			return endStopped
		}
	}
}

// plural returns the name of the resource, or "" if it is not known.
func (s *lazySource[R]) plural() string {
	m, err := s.cluster.GetRESTMapper().RESTMapping(s.gvk.GroupKind(), s.gvk.Version)
	if err != nil {
		return ""
	}
	return m.Resource.Resource
}

// bury announces every object that the informer still holds as deleted, since the watch may have ended before the server
// could say so, and removes the informer: it would otherwise ask for the missing kind for ever, and would keep the name
// and scope of the old definition if there is a new one.
//
// The informer may be shared. Each of the sources that share it buries it; whoever comes late finds it stopped. Should a
// late one nevertheless stop the successor, the source of the successor finds out when it looks next.
func (s *lazySource[R]) bury(ctx context.Context, q workqueue.TypedRateLimitingInterface[R], informer cache.Informer) {
	if ctx.Err() != nil {
		return
	}
	if st, ok := informer.(interface{ GetStore() toolscache.Store }); ok {
		events := s.events(ctx, q)
		for _, obj := range st.GetStore().List() {
			events.OnDelete(obj)
		}
	}
	if !informer.IsStopped() {
		_ = s.cluster.GetCache().RemoveInformer(ctx, s.obj)
	}
}
