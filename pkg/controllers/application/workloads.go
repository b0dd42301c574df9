// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// lingerTimeout is how long a kind is still watched after the last Application stops naming it.
const lingerTimeout = time.Minute

func newWorkloads(r *reconciler) *workloads {
	return multicluster.NewInstances(multicluster.InstancesOptions[mcreconcile.Request, *workload.Cluster]{
		What: "Applications",
		New:  r.newWorkload,
		Added: func(_ mcr.ClusterName, w, old *workload.Cluster, replaced bool) {
			if replaced {
				// Applications that the new instance does not find are forgotten once it has listed all of them.
				w.Reported = old.UIDs()
			}
		},
		Removed: r.disengaged,
		Queued:  (*workload.Cluster).Enqueue,
	})
}

// newWorkload creates the state of an instance of a cluster.
func (r *reconciler) newWorkload(
	name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request],
) (*workload.Cluster, error) {
	return workload.New(name, cl, queue, workload.Options{
		Clock: r.clock, RequestTimeout: r.requestTimeout, Linger: r.linger, StaleAfter: r.staleAfter,
		Assessor: r.assessor, Packer: r.packer, Recorder: cl.GetEventRecorder(controllerName), Handler: r.handle,
	})
}
