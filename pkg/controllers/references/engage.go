// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// hubLists is how many kinds of the hub are listed at once.
const hubLists = 8

func newWorkloads(r *reconciler) *workloads {
	return multicluster.NewInstances(multicluster.InstancesOptions[Request, *workload]{
		What: "references",
		New:  r.newWorkload,
		Added: func(_ mcr.ClusterName, w, before *workload, replaced bool) {
			if replaced {
				w.inherit(before)
			}
		},
		Removed: r.metrics.forgetCluster,
		Queued:  (*workload).enqueue,
	})
}

func (r *reconciler) newWorkload(
	name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[Request],
) (*workload, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(cl.GetConfig(), cl.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for cluster %q: %w", name, err)
	}
	w := &workload{
		name: name, inHub: name == hubName, client: cl.GetClient(), reader: cl.GetAPIReader(), recorder: cl.GetEventRecorder(controllerName),
		mapper: newServed(client, r.clock), queue: queue, log: r.loggerFor(name),
		dependencies: newDependencies(), reported: map[objectKey]string{},
	}
	watched, err := multicluster.WatchOptions(cl)
	if err != nil {
		return nil, fmt.Errorf("cannot create clients for cluster %q: %w", name, err)
	}
	watched.Clock = r.clock
	if w.inHub {
		// The hub's administrator controls what is in the hub: objects brought by users of workload clusters are not kept.
		watched.PerKind, watched.Total, watched.Listed = kindwatch.Unlimited, kindwatch.Unlimited, -1
		// Its lists do not wait for those of workload clusters.
		watched.Lists = limits.NewSemaphore[any](hubLists, hubLists)
	}
	definitions, objects := watched, watched
	definitions.Reduce, definitions.Handler = reduceDefinition, w.definitionChanged
	objects.Reduce, objects.Handler = reduce, w.changed
	if w.definitions, err = kindwatch.New(definitions); err != nil {
		return nil, fmt.Errorf("cannot watch the definitions of cluster %q: %w", name, err)
	}
	if w.watcher, err = kindwatch.New(objects); err != nil {
		return nil, fmt.Errorf("cannot watch cluster %q: %w", name, err)
	}
	return w, nil
}
