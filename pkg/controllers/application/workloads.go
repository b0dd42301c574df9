// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// linger is how long a kind is still watched that no Application names any more.
const linger = time.Minute

// workloads are the engaged workload clusters.
type workloads = multicluster.Instances[mcreconcile.Request, *workload]

func newWorkloads(r *reconciler) *workloads {
	return multicluster.NewInstances(multicluster.InstancesOptions[mcreconcile.Request, *workload]{
		What: "Applications",
		New:  r.newWorkload,
		Added: func(_ mcr.ClusterName, w, old *workload, replaced bool) {
			if replaced {
				// What the new one does not find is forgotten when it has read all Applications.
				w.told = old.uids()
			}
		},
		Removed: r.disengaged,
		Queued:  (*workload).enqueue,
	})
}

// ifCurrent tells something of an instance of a cluster, if it is the one that counts.
func (r *reconciler) ifCurrent(w *workload, fn func()) { r.workloads.IfCurrent(w.name, w, fn) }

// Start implements multicluster.Instance.
func (w *workload) Start(ctx context.Context) error { return w.watcher.Start(ctx) }

// WaitForSync implements multicluster.Instance.
func (w *workload) WaitForSync(ctx context.Context) error { return w.watcher.WaitForSync(ctx) }

// newWorkload makes what there is to know about an instance of a cluster.
func (r *reconciler) newWorkload(
	name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request],
) (*workload, error) {
	watched, err := multicluster.WatchOptions(cl)
	if err != nil {
		return nil, fmt.Errorf("cannot make clients for cluster %q: %w", name, err)
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(cl.GetConfig(), cl.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for cluster %q: %w", name, err)
	}
	w := &workload{
		name: name, client: watched.Client, metadata: watched.MetadataClient, queue: queue, clock: r.clock, requestTimeout: r.requestTimeout,
		guard:           watched.Guard,
		resolver:        kindwatch.NewResolver(kindwatch.ResolverOptions{Client: served, Account: watched.Account, Clock: r.clock}),
		applications:    map[record.ApplicationKey]*tracked{},
		byUID:           map[types.UID]record.ApplicationKey{},
		dependents:      map[record.ApplicationKey]sets.Set[record.ApplicationKey]{},
		users:           map[kindwatch.Kind]sets.Set[record.ApplicationKey]{},
		unansweredUntil: map[schema.GroupVersion]time.Time{},
		refusals:        map[refusalKey]refusal{},
		healthChecks:    healthcheck.New(r.clock),
		wanted:          record.NewWantedMarks(r.clock),
		announcements:   appstatus.NewAnnouncements(cl.GetEventRecorder(controllerName), r.clock),
	}
	watched.Clock, watched.Lists, watched.Linger = r.clock, r.lists, r.linger
	watched.StaleAfter = r.staleAfter
	watched.Handler = func(e kindwatch.Event) { r.handle(w, e) }
	watched.Reduce = record.NewReducer(r.assessor, &w.texts, r.packer, w.wanted).Reduce
	watched.Generation = w.wanted.Current
	if w.watcher, err = kindwatch.New(watched); err != nil {
		return nil, fmt.Errorf("cannot watch cluster %q: %w", name, err)
	}
	return w, nil
}
