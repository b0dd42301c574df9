// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/imported"
)

const (
	infrastructureGroup = "infrastructure.cluster.x-k8s.io"
	controlPlaneGroup   = "controlplane.cluster.x-k8s.io"
)

// emulator replays what a provider of Cluster API does with an object before its first call to the cloud, in the
// provider's order. It has the right to write everything in the hub. TestProviders compares it with the provider's own
// reconcilers where there are some.
type emulator struct {
	name, version string
	// kinds are those whose reconciler calls the cloud, with the finalizer that the reconciler adds.
	kinds map[schema.GroupKind]string
	// cluster is the kind of the infrastructure, and others are reconcilers that never call the cloud.
	cluster schema.GroupKind
	others  []string
	// credentialsFirst: the provider gets its credentials before it checks the pause.
	credentialsFirst bool
	// deletesCreated: the provider changes its cloud through objects in the hub, and deletes only those that it created.
	deletesCreated bool
	// identityField is the field, in the object of the kind identityKind, that names the credentials: an object of the
	// kind identity, whose field secret names a Secret, or the Secret itself.
	identityKind  schema.GroupKind
	identityField string
	identity      schema.GroupKind
	secret        []string
}

// Outcomes of a reconciliation that did not reach the cloud, and of one that did.
const (
	outcomeOwner       = "no owner"
	outcomeRefused     = "deletion refused"
	outcomePaused      = "paused"
	outcomeCredentials = "identity refused"
	outcomeFinalizer   = "finalizer refused"
	outcomeNothing     = "nothing to delete"
	outcomeUpdated     = "**cloud changed**"
	outcomeDeleted     = "**cloud resource deleted**"
)

func emulators() []emulator {
	return []emulator{
		{
			name: "CAPA", version: "v2.13.0",
			kinds: map[schema.GroupKind]string{
				{Group: controlPlaneGroup, Kind: "AWSManagedControlPlane"}:  "awsmanagedcontrolplane.controlplane.cluster.x-k8s.io",
				{Group: infrastructureGroup, Kind: "AWSManagedMachinePool"}: "awsmanagedmachinepools.infrastructure.cluster.x-k8s.io",
			},
			cluster:       schema.GroupKind{Group: infrastructureGroup, Kind: "AWSManagedCluster"},
			others:        []string{"AWSManagedCluster"},
			identityKind:  schema.GroupKind{Group: controlPlaneGroup, Kind: "AWSManagedControlPlane"},
			identityField: "identityRef",
			identity:      schema.GroupKind{Group: infrastructureGroup, Kind: "AWSClusterStaticIdentity"},
			secret:        []string{"spec", "secretRef"},
		},
		{
			name: "CAPZ", version: "v1.23.0",
			kinds: map[schema.GroupKind]string{
				{Group: infrastructureGroup, Kind: "AzureManagedControlPlane"}: "azuremanagedcontrolplane.infrastructure.cluster.x-k8s.io",
				{Group: infrastructureGroup, Kind: "AzureManagedMachinePool"}:  "azurecluster.infrastructure.cluster.x-k8s.io",
			},
			cluster:          schema.GroupKind{Group: infrastructureGroup, Kind: "AzureManagedCluster"},
			others:           []string{"AzureManagedCluster", "ASOSecret"},
			credentialsFirst: true,
			deletesCreated:   true,
			identityKind:     schema.GroupKind{Group: infrastructureGroup, Kind: "AzureManagedControlPlane"},
			identityField:    "identityRef",
			identity:         schema.GroupKind{Group: infrastructureGroup, Kind: "AzureClusterIdentity"},
			secret:           []string{"spec", "clientSecret", "name"},
		},
		{
			name: "CAPG", version: "v1.13.1",
			kinds: map[schema.GroupKind]string{
				{Group: infrastructureGroup, Kind: "GCPManagedCluster"}:      "gcpmanagedcluster.infrastructure.cluster.x-k8s.io",
				{Group: infrastructureGroup, Kind: "GCPManagedControlPlane"}: "gcpmanagedcontrolplane.infrastructure.cluster.x-k8s.io",
				{Group: infrastructureGroup, Kind: "GCPManagedMachinePool"}:  "gcpmanagedmachinepool.infrastructure.cluster.x-k8s.io",
			},
			cluster:       schema.GroupKind{Group: infrastructureGroup, Kind: "GCPManagedCluster"},
			identityKind:  schema.GroupKind{Group: infrastructureGroup, Kind: "GCPManagedCluster"},
			identityField: "credentialsRef",
		},
	}
}

// controlPlane returns the kind of the provider's control plane.
func (e emulator) controlPlane() schema.GroupKind {
	for kind := range e.kinds {
		if strings.HasSuffix(kind.Kind, "ControlPlane") {
			return kind
		}
	}
	panic(e.name + " has no control plane")
}

// reconcile does what the provider does with one object, and returns how far it got.
func (e emulator) reconcile(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	if err := hub.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return "", fmt.Errorf("cannot get the object: %w", err)
	}
	if len(object.GetOwnerReferences()) == 0 {
		return outcomeOwner, nil
	}
	_, paused := object.GetAnnotations()[imported.PausedAnnotation]
	if paused && !e.credentialsFirst {
		return outcomePaused, nil
	}
	if ok, err := e.credentials(ctx, object); err != nil || !ok {
		return outcomeCredentials, err
	}
	if paused {
		return outcomePaused, nil
	}
	finalizer := e.kinds[object.GroupVersionKind().GroupKind()]
	if object.GetDeletionTimestamp() != nil {
		// The provider does not check whether the finalizer is its own.
		return outcomeDeleted, nil
	}
	if !slices.Contains(object.GetFinalizers(), finalizer) {
		before := object.DeepCopy()
		object.SetFinalizers(append(object.GetFinalizers(), finalizer))
		// The provider's own reconciler gets the object as it was.
		if err := hub.Patch(ctx, object, client.MergeFrom(before), client.DryRunAll); err != nil {
			return outcomeFinalizer, nil //nolint:nilerr // That it failed is the outcome: the provider returns its error, and tries again.
		}
	}
	return outcomeUpdated, nil
}

// credentials reports whether the provider gets credentials for the cluster that an object belongs to: whether their
// Secret exists. That the identity allows no namespace is not counted: CAPZ does not check it for a machine pool.
func (e emulator) credentials(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	cluster, err := get(ctx, e.identityKind, object.GetNamespace(), object.GetName())
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	name, _, err := unstructured.NestedString(cluster.Object, "spec", e.identityField, "name")
	if err != nil {
		return false, fmt.Errorf("cannot read %s: %w", e.identityField, err)
	}
	if len(e.secret) > 0 {
		in := ""
		if imported.IsNamespaced(e.identity) {
			in = object.GetNamespace()
		}
		identity, err := get(ctx, e.identity, in, name)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if name, _, err = unstructured.NestedString(identity.Object, e.secret...); err != nil {
			return false, fmt.Errorf("cannot read %v: %w", e.secret, err)
		}
	}
	err = hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
	return err == nil, client.IgnoreNotFound(err)
}

func get(ctx context.Context, kind schema.GroupKind, in, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind.WithVersion(versions[kind]))
	return object, hub.Get(ctx, client.ObjectKey{Namespace: in, Name: name}, object)
}
