// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthrule"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/rollup"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// workloads are the engaged workload clusters.
type workloads = multicluster.Instances[mcreconcile.Request, *workload.Cluster]

// reconciler reconciles the Applications of the workload clusters.
type reconciler struct {
	workloads      *workloads
	fleet          Fleet
	classes        client.Reader
	rules          *healthrule.Rules
	definitions    *definition.Installer
	reports        *install.Reports
	rollup         *rollup.Collector
	metrics        *Metrics
	linger         time.Duration
	staleAfter     time.Duration
	packer         *record.Packer
	clock          clock.WithTicker
	requestTimeout time.Duration

	// enrolments has the last known class of each cluster.
	enrolments install.Latest[mcr.ClusterName, string]
}

// assessor returns the current Assessor of components.
func (r *reconciler) assessor() health.Assessor {
	a, known := r.rules.Assessor()
	if !known {
		// Nothing is watched before the rules are known.
		return health.New()
	}
	return a
}

// ifCurrent calls fn if w is the active instance of its cluster.
func (r *reconciler) ifCurrent(w *workload.Cluster, fn func()) { r.workloads.IfCurrent(w.Name, w, fn) }

// ownerIn returns the hub as the owner of its objects in a cluster.
func (r *reconciler) ownerIn(w *workload.Cluster) hubidentity.Owner {
	c, _ := r.fleet.Lookup(w.Name)
	return c.Hub
}

// fieldManagerIn is the field manager for writes to the Applications of a cluster and to their components.
func (r *reconciler) fieldManagerIn(w *workload.Cluster) string {
	return r.ownerIn(w).FieldManager(appsv1alpha1.FieldManager)
}
