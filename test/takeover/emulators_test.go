// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"fmt"
	"slices"

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
// provider's order: CAPA v2.10.0, CAPZ v1.21.0 and CAPG v1.10.0. It has the right to write everything in the hub.
type emulator struct {
	name string
	// kinds are those whose reconciler calls the cloud, with the finalizer that the reconciler adds.
	kinds map[schema.GroupKind]string
	// credentialsFirst: the provider gets its credentials before it checks the pause.
	credentialsFirst bool
	// identityKind is the kind, and identityField the field, in which a cluster names its credentials.
	identityKind  schema.GroupKind
	identityField string
	// usable reports whether the provider accepts what the field names.
	usable func(ctx context.Context, reference map[string]any) (bool, error)
}

// Outcomes of a reconciliation that did not reach the cloud, and of one that did.
const (
	outcomeOwner       = "no owner"
	outcomePaused      = "paused"
	outcomeCredentials = "identity refused"
	outcomeFinalizer   = "finalizer refused"
	outcomeUpdated     = "**cloud changed**"
	outcomeDeleted     = "**cloud resource deleted**"
)

func emulators() []emulator {
	return []emulator{
		{
			name: "CAPA",
			kinds: map[schema.GroupKind]string{
				{Group: controlPlaneGroup, Kind: "AWSManagedControlPlane"}:  "awsmanagedcontrolplane.controlplane.cluster.x-k8s.io",
				{Group: infrastructureGroup, Kind: "AWSManagedMachinePool"}: "awsmanagedmachinepools.infrastructure.cluster.x-k8s.io",
			},
			identityKind:  schema.GroupKind{Group: controlPlaneGroup, Kind: "AWSManagedControlPlane"},
			identityField: "identityRef",
			usable:        usableIdentity("AWSClusterRoleIdentity", ""),
		},
		{
			name: "CAPZ",
			kinds: map[schema.GroupKind]string{
				{Group: infrastructureGroup, Kind: "AzureManagedControlPlane"}: "azuremanagedcontrolplane.infrastructure.cluster.x-k8s.io",
				{Group: infrastructureGroup, Kind: "AzureManagedMachinePool"}:  "azurecluster.infrastructure.cluster.x-k8s.io",
			},
			credentialsFirst: true,
			identityKind:     schema.GroupKind{Group: infrastructureGroup, Kind: "AzureManagedControlPlane"},
			identityField:    "identityRef",
			usable:           usableIdentity("AzureClusterIdentity", namespace),
		},
		{
			name: "CAPG",
			kinds: map[schema.GroupKind]string{
				{Group: infrastructureGroup, Kind: "GCPManagedCluster"}:      "gcpmanagedcluster.infrastructure.cluster.x-k8s.io",
				{Group: infrastructureGroup, Kind: "GCPManagedControlPlane"}: "gcpmanagedcontrolplane.infrastructure.cluster.x-k8s.io",
				{Group: infrastructureGroup, Kind: "GCPManagedMachinePool"}:  "gcpmanagedmachinepool.infrastructure.cluster.x-k8s.io",
			},
			identityKind:  schema.GroupKind{Group: infrastructureGroup, Kind: "GCPManagedCluster"},
			identityField: "credentialsRef",
			usable: func(ctx context.Context, reference map[string]any) (bool, error) {
				name, _ := reference["name"].(string)
				err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
				return err == nil, client.IgnoreNotFound(err)
			},
		},
	}
}

// usableIdentity checks allowedNamespaces as CAPA and CAPZ do: absent means no namespace, empty means every one.
func usableIdentity(kind, in string) func(context.Context, map[string]any) (bool, error) {
	return func(ctx context.Context, reference map[string]any) (bool, error) {
		name, _ := reference["name"].(string)
		identity := &unstructured.Unstructured{}
		groupKind := schema.GroupKind{Group: infrastructureGroup, Kind: kind}
		identity.SetGroupVersionKind(groupKind.WithVersion(versions[groupKind]))
		if err := hub.Get(ctx, client.ObjectKey{Namespace: in, Name: name}, identity); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		allowed, found, err := unstructured.NestedMap(identity.Object, "spec", "allowedNamespaces")
		return found && len(allowed) == 0, err
	}
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
		if err := hub.Patch(ctx, object, client.MergeFrom(before)); err != nil {
			return outcomeFinalizer, nil //nolint:nilerr // That it failed is the outcome: the provider returns its error, and tries again.
		}
	}
	return outcomeUpdated, nil
}

// credentials reports whether the provider gets credentials for the cluster that an object belongs to.
func (e emulator) credentials(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(e.identityKind.WithVersion(versions[e.identityKind]))
	if err := hub.Get(ctx, client.ObjectKeyFromObject(object), cluster); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	reference, _, err := unstructured.NestedMap(cluster.Object, "spec", e.identityField)
	if err != nil {
		return false, fmt.Errorf("cannot read %s: %w", e.identityField, err)
	}
	return e.usable(ctx, reference)
}
