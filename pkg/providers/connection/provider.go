// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// Provider connects the manager to every cluster that its sources enrol. Its methods are safe for concurrent use, and
// reads wait for nothing but a short lock that is never held during I/O.
//
// It moves enrolments through the state machine, step by step. Its fields implement the steps.
type Provider struct {
	o          *Options
	sources    map[string]Source
	hub        cluster.Cluster
	controller controller.TypedController[Key]
	metrics    *metrics
	life       *lifetime
	// events and answers are shared by busy clusters.
	events, answers *transport.Shared

	// The state of enrolments, and its view for readers.
	records *records
	view    *view

	// Whether a cluster may be connected, and when.
	lanes      *lanes
	classes    *classRules
	identities *identities
	schedule   schedule

	// The steps.
	connector   *connector
	checker     *checker
	engager     *engager
	offboarding *offboarding
	panics      *panics

	mu      sync.Mutex
	started bool
}

var (
	_ mcr.Provider                                  = &Provider{}
	_ mcr.ProviderRunnable                          = &Provider{}
	_ reconcile.TypedReconciler[Key]                = &Provider{}
	_ Classes                                       = &Provider{}
	_ interface{ Subscribe(func(mcr.ClusterName)) } = &Provider{}
)

// Get returns an engaged cluster, as a Connected. For an enrolled cluster that is not engaged, the error is
// multicluster.ErrClusterNotConnected, for any other mcr.ErrClusterNotFound.
func (p *Provider) Get(_ context.Context, name mcr.ClusterName) (cluster.Cluster, error) {
	return p.view.connection(name)
}

// IndexField implements mcr.Provider. There are no caches to be indexed.
func (*Provider) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return errNoCache
}

// List returns every enrolled cluster, sorted by name.
func (p *Provider) List() []Cluster { return p.view.list() }

// Lookup returns one enrolled cluster.
func (p *Provider) Lookup(name mcr.ClusterName) (Cluster, bool) { return p.view.lookup(name) }

// MayLeave reports whether a cluster may have to be offboarded because its enrolment ended while no manager ran. If it
// does, it is in the fleet when this turns false.
func (p *Provider) MayLeave(name mcr.ClusterName) bool {
	k, ok := ParseClusterName(name)
	return ok && p.records.mayLeave(k)
}

// InClass implements Classes.
func (p *Provider) InClass(class string) []mcr.ClusterName { return p.view.ofClass(class) }

// ByIdentifier returns the enrolled cluster that holds an effective identifier, connected or not.
func (p *Provider) ByIdentifier(id string) (Cluster, bool) {
	k, ok := p.identities.arbiter.holder(id)
	if !ok {
		return Cluster{}, false
	}
	return p.view.lookup(k.ClusterName())
}

// Subscribe registers fn to be called, without a lock held, after each change visible to readers. fn must not block.
func (p *Provider) Subscribe(fn func(mcr.ClusterName)) { p.view.subscribe(fn) }

// OnOffboard registers an OffboardFunc. Call it before the Provider starts.
func (p *Provider) OnOffboard(fn OffboardFunc) { p.offboarding.add(fn) }
