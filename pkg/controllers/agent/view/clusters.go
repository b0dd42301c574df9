// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Kinds of a workload cluster that are always watched: what Masthead itself put there, without content.
var (
	OwnedCRDKind = multicluster.OwnedDefinitions() //nolint:gochecknoglobals // A constant.

	OwnedSecretKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		LabelSelector:    fleetv1alpha1.ManagedByLabel + "=" + ManagedByValue,
	}
)

// ControllerName is the name of the controller of claims, in metrics, logs and events.
const ControllerName = "agent"

// ManagedByValue is the value of the label masthead.dev/managed-by.
const ManagedByValue = fleetv1alpha1.FieldManager

// Clusters are the engaged workload clusters. It is the source of the requirement controller.
type Clusters struct {
	*multicluster.Instances[request.Request, *Cluster]
	ClustersOptions
}

// ClustersOptions say what the engaged clusters need to know, and whom they tell.
type ClustersOptions struct {
	// Engaged is told that an instance is the one that counts from now on, and disengaged that a cluster has none any
	// more. Both are called with the lock held: what they note and forget, they do before another instance of the cluster
	// is known.
	Engaged    func(*Cluster)
	Disengaged func(mcr.ClusterName)

	// Queued has a cluster that was engaged looked at.
	Queued func(*Cluster)

	// Identify says which cluster a name leads to now.
	Identify func(mcr.ClusterName) Identity

	// Fleet knows whose the clusters are.
	Fleet Fleet

	// Handle is called for what happens in a cluster.
	Handle func(*Cluster, kindwatch.Event)
}

// NewClusters returns the engaged clusters, of which there are none yet.
func NewClusters(o ClustersOptions) *Clusters {
	s := &Clusters{ClustersOptions: o}
	s.Instances = multicluster.NewInstances(multicluster.InstancesOptions[request.Request, *Cluster]{
		What: "claims",
		New: func(name mcr.ClusterName, cl cluster.Cluster, _ workqueue.TypedRateLimitingInterface[request.Request]) (*Cluster, error) {
			return s.engage(name, cl)
		},
		Added: s.added, Removed: func(name mcr.ClusterName) { s.Disengaged(name) }, Queued: o.Queued,
	})
	return s
}

// ownerOf returns what says whose is what is in a cluster. A hub can take over from another one while it is connected.
func (s *Clusters) ownerOf(name mcr.ClusterName) func() hubidentity.Owner {
	return func() hubidentity.Owner {
		c, _ := s.Fleet.Lookup(name)
		return c.Hub
	}
}

// engage makes an instance of a cluster, which watches its claims.
func (s *Clusters) engage(name mcr.ClusterName, cl cluster.Cluster) (*Cluster, error) {
	w := NewCluster(Connection{
		Name:     name,
		Identity: s.Identify(name),
		Client:   cl.GetClient(),
		Reader:   cl.GetAPIReader(),
		Recorder: cl.GetEventRecorder(ControllerName),
		Guard:    multicluster.GuardOf(cl),
		Owner:    s.ownerOf(name),
	})
	watched, err := multicluster.WatchOptions(cl)
	if err != nil {
		return nil, fmt.Errorf("cannot make clients for cluster %q: %w", name, err)
	}
	watched.Handler, watched.KeepManager = func(e kindwatch.Event) { s.Handle(w, e) }, fleetv1alpha1.LateInitFieldManager
	if w.Watcher, err = kindwatch.New(watched); err != nil {
		return nil, fmt.Errorf("cannot watch cluster %q: %w", name, err)
	}
	w.Watcher.Set(OwnerFixed, OwnedCRDKind, OwnedSecretKind, NamespaceKind)
	return w, nil
}

// added is called when an instance is the one that counts, with the lock held. If it leads to the same cluster as its
// predecessor, in another way, it starts with what that one knows. If it does not, or if that is not known, nothing is
// taken over: the predecessor is treated as gone although it may live for a while.
func (s *Clusters) added(name mcr.ClusterName, w, old *Cluster, replaced bool) {
	switch {
	case !replaced:
	case old.Identity.same(w.Identity):
		w.takeOver(old)
	default:
		s.Disengaged(name)
	}
	s.Engaged(w)
}

// Start implements multicluster.Instance.
func (w *Cluster) Start(ctx context.Context) error { return w.Watcher.Start(ctx) }

// WaitForSync implements multicluster.Instance.
func (w *Cluster) WaitForSync(ctx context.Context) error { return w.Watcher.WaitForSync(ctx) }
