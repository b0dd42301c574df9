// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Metrics records the state of definitions in the workload clusters.
type Metrics interface {
	// Definition records whether a definition offered to a cluster is there as it is in the hub.
	Definition(cluster mcr.ClusterName, crd string, served bool)

	// ForgetDefinition drops the records of a definition, and ForgetCluster those of a cluster.
	ForgetDefinition(cluster mcr.ClusterName, crd string)
	ForgetCluster(cluster mcr.ClusterName)
}

// Reconciler keeps the definitions of the published claim kinds in the workload clusters as they are in the hub,
// and thereby decides which kinds of claims are synchronised in which cluster.
type Reconciler struct {
	Options
	reports *install.Reports

	mu sync.Mutex
	// wanted are the definitions derived from the hub's, read once for all clusters.
	wanted map[string]wantedDefinition

	// judgeable holds the parts of the hub's definitions needed to judge those of clusters, read once for all clusters.
	judgeable map[string]HubDefinition
}

// Options are the dependencies of a Reconciler.
type Options struct {
	Hub       *index.Hub
	Workloads *index.Clusters
	Fleet     index.Fleet
	Classes   client.Reader
	HubReader client.Reader
	Recorder  events.EventRecorder
	Reporter  install.Reporter
	Metrics   Metrics
	Clock     clock.PassiveClock

	// Users tracks our username in each cluster.
	Users *install.PolicyUsers

	// Grace is how long a definition that is no longer offered is closed before it is deleted.
	Grace time.Duration

	// KindGone is called when the claims of a kind are no longer followed in a cluster.
	KindGone func(mcr.ClusterName, kindwatch.Kind)
}

// New returns a reconciler of definitions.
func New(o Options) *Reconciler {
	return &Reconciler{
		Options: o, reports: install.NewReports(o.Reporter, o.Recorder),
		wanted: map[string]wantedDefinition{}, judgeable: map[string]HubDefinition{},
	}
}

// wantedDefinition is the definition that all workload clusters shall have for one state of the hub's.
type wantedDefinition struct {
	of   install.State
	crd  *unstructured.Unstructured
	hash string

	// kind is in the version in which the claims are synchronised.
	kind kindwatch.Kind

	// converts reports whether the hub's definition has a conversion webhook.
	converts bool
}

// get reads a definition from an API server.
func (r *Reconciler) get(ctx context.Context, from client.Reader, name string) (*unstructured.Unstructured, error) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(crossplane.CRDGVK)
	if err := from.Get(ctx, types.NamespacedName{Name: name}, crd); err != nil {
		return nil, fmt.Errorf("cannot get CustomResourceDefinition %q: %w", name, err)
	}
	return crd, nil
}

// report reports that a definition is in a cluster, or the problem that it cannot be put there.
func (r *Reconciler) report(ctx context.Context, cluster connection.Cluster, req mcreconcile.Request, p *condition.Error) {
	r.Metrics.Definition(req.ClusterName, req.Name, p == nil)
	r.reports.Definition(ctx, cluster, req.Name, "PullDefinition", p == nil, p)
}
