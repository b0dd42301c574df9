// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// NewPins returns the connection.Pins that are kept in ClusterProfiles. The reader should use the API server directly:
// it is used once, at start, when a cache would first have to sync.
func NewPins(hub client.Reader) connection.Pins {
	return &pins{hub: hub}
}

type pins struct {
	hub client.Reader
}

// Load returns the cluster to which each published enrolment led when it was last connected.
func (p *pins) Load(ctx context.Context) (map[mcr.ClusterName]connection.Pin, error) {
	var profiles inventoryv1alpha1.ClusterProfileList
	marked := client.MatchingLabels{inventoryv1alpha1.LabelClusterManagerKey: fleetv1alpha1.FieldManager}
	if err := p.hub.List(ctx, &profiles, marked); err != nil {
		return nil, fmt.Errorf("cannot list ClusterProfiles: %w", err)
	}
	loaded := make(map[mcr.ClusterName]connection.Pin, len(profiles.Items))
	for i := range profiles.Items {
		if name, pin, ok := parsePin(&profiles.Items[i]); ok {
			loaded[name] = pin
		}
	}
	return loaded, nil
}

// parsePin reads the pin in one profile. A profile that was never connected has none, nor does one with several owners:
// which of them was connected is not known.
func parsePin(profile *inventoryv1alpha1.ClusterProfile) (mcr.ClusterName, connection.Pin, bool) {
	name, ok := parseClusterName(profile)
	if !ok || len(profile.OwnerReferences) != 1 {
		return "", connection.Pin{}, false
	}
	pin := connection.Pin{
		UID:        propertyValue(profile.Status.Properties, PropertyClusterUID),
		Identifier: propertyValue(profile.Status.Properties, PropertyClusterIdentifier),
		ObjectUID:  profile.OwnerReferences[0].UID,
		Kind:       schema.FromAPIVersionAndKind(profile.OwnerReferences[0].APIVersion, profile.OwnerReferences[0].Kind),
	}
	if c := meta.FindStatusCondition(profile.Status.Conditions, fleetv1alpha1.ConditionConnected); c != nil {
		pin.Reason = c.Reason
	}
	// A cluster for which its class had no place is not given one before those that have waited as long.
	if pin.Reason != fleetv1alpha1.ReasonClassFull {
		pin.Class = propertyValue(profile.Status.Properties, PropertyEnrollmentClass)
	}
	if pin.UID == "" {
		return "", connection.Pin{}, false
	}
	return name, pin, true
}
