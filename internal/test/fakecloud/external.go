// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// external is the external client of one managed resource: the provider's requests to its cloud.
type external struct {
	cloud *Cloud
	id    resourceID
	// shape converts to the shape of status.atProvider in the hub.
	shape shaper
}

var _ managed.ExternalClient = &external{}

// Observe shows the resource in the managed resource's status.
func (e *external) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	found, err := e.cloud.read(e.id)
	if err != nil || found == nil {
		return managed.ExternalObservation{}, err
	}
	var connection managed.ConnectionDetails
	if found.connection != nil && e.id.kind != kindEKSCluster {
		if connection, err = found.connection(ctx); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	object := toUnstructured(mg)
	if err := unstructured.SetNestedMap(object.Object, e.shape(found.atProvider), "status", "atProvider"); err != nil {
		return managed.ExternalObservation{}, fmt.Errorf("cannot set status.atProvider: %w", err)
	}
	mg.SetConditions(xpv2.Available())
	return managed.ExternalObservation{
		ResourceExists: true, ResourceUpToDate: upToDate(mg, found, e.shape), ConnectionDetails: connection,
	}, nil
}

// upToDate compares forProvider with the cloud. A provider that only observes does not compare.
func upToDate(mg resource.Managed, found *cloudResource, shape shaper) bool {
	policies := mg.GetManagementPolicies()
	if len(policies) > 0 && !slices.Contains(policies, xpv2.ManagementActionAll) && !slices.Contains(policies, xpv2.ManagementActionUpdate) {
		return true
	}
	shown := shape(found.atProvider)
	for field, value := range forProvider(mg) {
		if actual, ok := shown[field]; ok && !equality.Semantic.DeepEqual(actual, value) {
			return false
		}
	}
	return found.tagged
}

// Create creates the resource in the cloud.
func (e *external) Create(_ context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	e.cloud.create(e.id, forProvider(mg))
	return managed.ExternalCreation{}, nil
}

// Update changes the resource in the cloud.
func (e *external) Update(_ context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, e.cloud.update(e.id, forProvider(mg))
}

// Delete deletes the resource in the cloud.
func (e *external) Delete(context.Context, resource.Managed) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, e.cloud.destroy(e.id)
}

// Disconnect does nothing: there is no connection.
func (e *external) Disconnect(context.Context) error { return nil }

func forProvider(mg resource.Managed) map[string]any {
	fields, _, _ := unstructured.NestedMap(toUnstructured(mg).Object, "spec", "forProvider")
	return fields
}

func toUnstructured(mg resource.Managed) *unstructured.Unstructured {
	return mg.(interface {
		object() *unstructured.Unstructured
	}).object()
}
