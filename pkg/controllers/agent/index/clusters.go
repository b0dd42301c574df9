// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Kinds that are always watched in a workload cluster: objects that Masthead created, metadata only.
var (
	OwnedCRDKind = multicluster.OwnedDefinitions() //nolint:gochecknoglobals // A constant.

	OwnedSecretKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		LabelSelector:    fleetv1alpha1.ManagedByLabel + "=" + ManagedByValue,
	}
)

// ControllerName is the claim controller's name in metrics, logs and events.
const ControllerName = "agent"

// ManagedByValue is the value of the label masthead.dev/managed-by.
const ManagedByValue = fleetv1alpha1.FieldManager

// Clusters are the engaged workload clusters. The requirement controller watches them.
type Clusters struct {
	*multicluster.Instances[multicluster.ObjectRequest, *Cluster]
	ClustersOptions
}

// ClustersOptions are the dependencies and callbacks of Clusters.
type ClustersOptions struct {
	// Engaged is called when an instance becomes active, Disengaged when a cluster has no instance left. Both are called
	// with the lock held, and return before another instance of the cluster is known.
	Engaged    func(*Cluster)
	Disengaged func(mcr.ClusterName)

	// Queued requeues an engaged cluster.
	Queued func(*Cluster)

	// Identify returns the cluster that a name refers to now.
	Identify func(mcr.ClusterName) Identity

	// Fleet knows the hub of each cluster.
	Fleet Fleet

	// Handle is called for each event in a cluster.
	Handle func(*Cluster, kindwatch.Event)
}

// NewClusters returns Clusters without any cluster.
func NewClusters(o ClustersOptions) *Clusters {
	s := &Clusters{ClustersOptions: o}
	s.Instances = multicluster.NewInstances(multicluster.InstancesOptions[multicluster.ObjectRequest, *Cluster]{
		What: "claims",
		New: func(
			name mcr.ClusterName, cl cluster.Cluster, _ workqueue.TypedRateLimitingInterface[multicluster.ObjectRequest],
		) (*Cluster, error) {
			return s.engage(name, cl)
		},
		Added: s.added, Removed: func(name mcr.ClusterName) { s.Disengaged(name) }, Queued: o.Queued,
	})
	return s
}

// ownerFunc returns a getter of the cluster's hub. Another hub can take over while the cluster is connected.
func (s *Clusters) ownerFunc(name mcr.ClusterName) func() hubidentity.Owner {
	return func() hubidentity.Owner {
		c, _ := s.Fleet.Lookup(name)
		return c.Hub
	}
}

// engage creates an instance of a cluster and watches its claims.
func (s *Clusters) engage(name mcr.ClusterName, cl cluster.Cluster) (*Cluster, error) {
	w := NewCluster(Connection{
		Name:     name,
		Identity: s.Identify(name),
		Client:   cl.GetClient(),
		Reader:   cl.GetAPIReader(),
		Recorder: cl.GetEventRecorder(ControllerName),
		Guard:    multicluster.GetGuard(cl),
		Owner:    s.ownerFunc(name),
	})
	watched, err := multicluster.WatchOptions(cl)
	if err != nil {
		return nil, fmt.Errorf("cannot create clients for cluster %q: %w", name, err)
	}
	watched.Handler, watched.KeepManager = func(e kindwatch.Event) { s.Handle(w, e) }, fleetv1alpha1.LateInitFieldManager
	if w.Watcher, err = kindwatch.New(watched); err != nil {
		return nil, fmt.Errorf("cannot watch cluster %q: %w", name, err)
	}
	w.Watcher.Set(OwnerFixed, OwnedCRDKind, OwnedSecretKind, NamespaceKind)
	return w, nil
}

// added is called with the lock held when an instance becomes active. If it is known to be the same cluster as its
// predecessor, reached differently, it inherits the predecessor's state. Otherwise it inherits nothing: the predecessor
// counts as gone, although it may live for a while.
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

// Fleet is the agent's view of the enrolled clusters. connection.Provider implements it.
type Fleet interface {
	// Lookup returns the cluster enrolled under a name.
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)

	// ByIdentifier returns the cluster that holds an identifier. At most one does.
	ByIdentifier(id string) (connection.Cluster, bool)

	// Classes finds the clusters of a class.
	connection.Classes

	// Subscribe registers a function to call when what is known about a cluster changes. It must not block.
	Subscribe(fn func(mcr.ClusterName))

	// OnOffboard registers a function to call when a cluster leaves for good, while it is still connected.
	OnOffboard(fn connection.OffboardFunc)
}
