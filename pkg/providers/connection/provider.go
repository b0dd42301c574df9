// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Provider connects the manager to every cluster that its sources enrol.
type Provider struct {
	o Options
}

var (
	_ mcr.Provider         = &Provider{}
	_ mcr.ProviderRunnable = &Provider{}
)

// New returns a Provider. Hand it to mcmanager.New or WithMultiCluster, then call SetupWithManager.
func New(o Options) (*Provider, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Provider{o: o}, nil
}

// SetupWithManager reads the hub through the manager's local cluster. It must be called before the manager starts.
func (p *Provider) SetupWithManager(mgr mcmanager.Manager) error { return nil }

// Start connects clusters until ctx ends. The manager calls it.
func (p *Provider) Start(ctx context.Context, aware mcr.Aware) error {
	<-ctx.Done()
	return nil
}

// Get returns an engaged cluster.
func (p *Provider) Get(_ context.Context, name mcr.ClusterName) (cluster.Cluster, error) {
	return nil, mcr.ErrClusterNotFound
}

// IndexField adds an index to the caches of all clusters. It must be called before the provider starts.
func (p *Provider) IndexField(_ context.Context, obj client.Object, field string, fn client.IndexerFunc) error {
	return errors.New("not indexed")
}

// List returns every enrolled cluster, sorted by name.
func (p *Provider) List() []Cluster { return nil }

// Lookup returns one enrolled cluster.
func (p *Provider) Lookup(name mcr.ClusterName) (Cluster, bool) { return Cluster{}, false }

// ByIdentifier returns the cluster that holds an effective identifier.
func (p *Provider) ByIdentifier(id string) (Cluster, bool) { return Cluster{}, false }

// Subscribe has fn called, without any lock held, after each change that a reader could see. fn must not block.
func (p *Provider) Subscribe(fn func(mcr.ClusterName)) {}

// KindMissing records that a cluster does not serve a kind that a controller wants to watch.
func (p *Provider) KindMissing(name mcr.ClusterName, gk schema.GroupKind) {}

// KindServed records that a cluster serves a kind.
func (p *Provider) KindServed(name mcr.ClusterName, gk schema.GroupKind) {}
