// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/managed"
)

// Owners of kinds in the hub's watcher.
const (
	OwnerFixed    = "fixed"
	ownerLegacy   = "legacy"
	OwnerClaims   = "claims"
	ownerComposed = "composed"
)

var namespaceGVK = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"} //nolint:gochecknoglobals // A constant.

// NamespaceKind are the namespaces of a workload cluster, of which only what pairs them with the hub is kept.
var NamespaceKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
	GroupVersionKind: namespaceGVK,
	Resource:         "namespaces",
	ClusterScoped:    true,
	MetadataOnly:     true,
	OnlyAnnotations: strings.Join([]string{
		fleetv1alpha1.TargetNamespaceAnnotation,
		fleetv1alpha1.CredentialsSecretNameAnnotation,
		fleetv1alpha1.OnTargetChangeAnnotation,
	}, ","),
}

// claimOf returns the claim that an object of the hub comes from, or nil if the cluster does not have it. known is
// false as long as that cannot be told.
func (w *Cluster) claimOf(from ownership.Origin) (claim *unstructured.Unstructured, known bool) {
	kind, followed := w.KindOf(from.Kind.GroupResource().String())
	if !followed {
		return nil, false
	}
	claim, err := w.Watcher.Get(kind, types.NamespacedName{Namespace: from.Namespace, Name: from.Name})
	if err != nil {
		return nil, apierrors.IsNotFound(err)
	}
	return claim, true
}

// BearsFinalizer is whether a claim has our finalizer.
func (w *Cluster) BearsFinalizer(claim *unstructured.Unstructured) bool {
	return w.Owner().IsProtected(claim)
}

// Identity is which cluster an instance leads to.
type Identity struct {
	// Object is the enrolled object of the hub.
	Object types.UID

	// Cluster is the cluster itself.
	Cluster string
}

// same is whether two identities are known to be those of the same cluster.
func (i Identity) same(other Identity) bool { return i == other && i.Cluster != "" }

// Cluster is one instance of an engaged workload cluster. It lives as long as its connection.
type Cluster struct {
	Connection

	// Verified are the definitions that were compared with the hub's and found right.
	Verified *managed.Verified[string]

	mu sync.Mutex

	// kinds are the claim kinds that are synchronised, by the name of their CRD: those whose CRD in this cluster is the
	// one that Masthead put there, and those of which claims may be left that need us to go.
	kinds map[string]Followed

	// judged are the states of definitions on both sides in which it was decided how they are retained.
	judged map[string]string

	// drained are the CRDs that are not Masthead's, and of which no claim bears our finalizer.
	drained sets.Set[string]

	// unoffered are the definitions that the hub does not offer to the cluster, or not in the version that it has.
	unoffered map[string]struct{}

	// unserved are the definitions that are in place and whose kinds are not served, with since when that is known.
	unserved map[string]time.Time

	// secrets are the states in which Masthead left the Secrets that it wrote into the cluster, to notice that somebody
	// else wrote them.
	secrets map[types.NamespacedName]CopyState

	// copies are the names of the Secrets with our label, by the UID of their controller.
	copies map[types.UID]sets.Set[string]

	// Awaited are Secrets of others that are in the way of claims.
	awaited awaitedSecrets
}

// Connection is how an instance of a cluster is reached.
type Connection struct {
	Name     mcr.ClusterName
	Identity Identity
	Client   client.Client
	Reader   client.Reader
	Recorder events.EventRecorder
	Guard    *guard.Guard
	Watcher  *kindwatch.Watcher

	// Owner is the hub as the owner of what is in the cluster.
	Owner func() hubidentity.Owner
}

// NewCluster returns an instance of a cluster of which nothing is known yet.
func NewCluster(c Connection) *Cluster {
	return &Cluster{
		Connection: c,
		kinds:      map[string]Followed{},
		judged:     map[string]string{},
		drained:    sets.New[string](),
		unserved:   map[string]time.Time{},
		Verified:   managed.NewVerified[string](),
		secrets:    map[types.NamespacedName]CopyState{},
		copies:     map[types.UID]sets.Set[string]{},
		awaited:    newAwaitedSecrets(),
	}
}

// Request names a claim of the cluster.
func (w *Cluster) Request(kind kindwatch.Kind, claim *unstructured.Unstructured) request.Request {
	return request.Request{
		ClusterName: w.Name, Kind: kind,
		NamespacedName: types.NamespacedName{Namespace: claim.GetNamespace(), Name: claim.GetName()},
	}
}

// FieldOwner is the field manager with which the cluster is written to.
func (w *Cluster) FieldOwner() client.FieldOwner {
	return client.FieldOwner(w.Owner().FieldManager(fleetv1alpha1.FieldManager))
}

// Unprotected returns a claim without our finalizer.
func (w *Cluster) Unprotected(claim *unstructured.Unstructured) *unstructured.Unstructured {
	out := claim.DeepCopy()
	out.SetFinalizers(w.Owner().Released(out.GetFinalizers()))
	return out
}

// takeOver begins with what another instance of the same cluster knows.
func (w *Cluster) takeOver(old *Cluster) {
	old.mu.Lock()
	defer old.mu.Unlock()
	maps.Copy(w.kinds, old.kinds)
	maps.Copy(w.secrets, old.secrets)
	w.drained = old.drained.Clone()
	w.watchKinds()
}
