// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// Owners of kinds in the hub's watcher.
const (
	OwnerFixed    = "fixed"
	ownerLegacy   = "legacy"
	OwnerClaims   = "claims"
	ownerComposed = "composed"
)

var namespaceGVK = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"} //nolint:gochecknoglobals // A constant.

// NamespaceKind watches the namespaces of a workload cluster. Only what pairs them with the hub is cached.
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

// reader reads an object, or its metadata only: Watcher.Get or Watcher.Metadata.
type reader func(kindwatch.Kind, types.NamespacedName) (*unstructured.Unstructured, error)

// getClaim returns the claim of an object in the hub, or nil if the cluster does not have it. known is false while the
// watch cannot tell.
func (w *Cluster) getClaim(from ownership.Origin, read reader) (claim *unstructured.Unstructured, known bool) {
	kind, followed := w.KindFor(from.Resource.String())
	if !followed {
		return nil, false
	}
	claim, err := read(kind, types.NamespacedName{Namespace: from.Namespace, Name: from.Name})
	if err != nil {
		return nil, apierrors.IsNotFound(err)
	}
	return claim, true
}

// BearsFinalizer reports whether a claim has our finalizer.
func (w *Cluster) BearsFinalizer(claim *unstructured.Unstructured) bool {
	return w.Owner().IsProtected(claim)
}

// Identity identifies the cluster behind an instance.
type Identity struct {
	// Object is the UID of the enrolled object in the hub.
	Object types.UID

	// Cluster identifies the cluster itself.
	Cluster string
}

// same reports whether two identities are known to be of the same cluster.
func (i Identity) same(other Identity) bool { return i == other && i.Cluster != "" }

// Cluster is one instance of an engaged workload cluster. It lives as long as its connection.
type Cluster struct {
	Connection

	mu sync.Mutex

	// definitions are those of claim kinds, by name.
	definitions map[string]Definition

	// secrets are the last states of the Secrets that Masthead wrote into the cluster, to detect foreign writes.
	secrets map[types.NamespacedName]CopyState

	// copies are the Secrets with our label.
	copies secretIndex

	// awaited are foreign Secrets that block claims.
	awaited awaitedSecrets
}

// Connection is how an instance reaches its cluster.
type Connection struct {
	Name     mcr.ClusterName
	Identity Identity
	Client   client.Client
	Reader   client.Reader
	Recorder events.EventRecorder
	Guard    *guard.Guard
	Watcher  *kindwatch.Watcher

	// Owner returns the hub as the owner of objects in the cluster.
	Owner func() hubidentity.Owner
}

// NewCluster returns an instance of a cluster with an empty cache.
func NewCluster(c Connection) *Cluster {
	return &Cluster{
		Connection:  c,
		definitions: map[string]Definition{},
		secrets:     map[types.NamespacedName]CopyState{},
		copies:      secretIndex{objects.Index[types.UID, types.NamespacedName]{}},
		awaited:     awaitedSecrets{waits: newWaits[types.NamespacedName](), watched: map[kindwatch.Kind]types.NamespacedName{}},
	}
}

// Request returns the request for a claim of the cluster.
func (w *Cluster) Request(kind kindwatch.Kind, claim types.NamespacedName) multicluster.ObjectRequest {
	return multicluster.ObjectRequest{ClusterName: w.Name, Kind: kind, NamespacedName: claim}
}

// FieldOwner is our field manager in the cluster.
func (w *Cluster) FieldOwner() client.FieldOwner {
	return client.FieldOwner(w.Owner().FieldManager(fleetv1alpha1.FieldManager))
}

// Unprotected returns a claim without our finalizer.
func (w *Cluster) Unprotected(claim *unstructured.Unstructured) *unstructured.Unstructured {
	out := claim.DeepCopy()
	out.SetFinalizers(w.Owner().Released(out.GetFinalizers()))
	return out
}

// takeOver copies the state of another instance of the same cluster.
func (w *Cluster) takeOver(old *Cluster) {
	old.mu.Lock()
	defer old.mu.Unlock()
	for crd, d := range old.definitions {
		// The rest is found out again.
		w.editDefinition(crd, func(n *Definition) { *n = Definition{Followed: d.Followed, Drained: d.Drained} })
	}
	maps.Copy(w.secrets, old.secrets)
	w.watchKinds()
}
