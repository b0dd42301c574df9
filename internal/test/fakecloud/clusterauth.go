// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const defaultRefreshPeriod = 10 * time.Minute

// clusterAuth is the external client of a ClusterAuth, which stands for no resource of the cloud: creating it and
// updating it means reading the cluster and creating a token.
type clusterAuth struct {
	cloud *Cloud
	hub   client.Client
	id    resourceID
	seen  *rotations
}

var _ managed.ExternalClient = &clusterAuth{}

// rotations records at which rotation of the cloud each ClusterAuth created its token.
type rotations struct {
	mu   sync.Mutex
	last map[types.UID]int
}

func (r *rotations) get(uid types.UID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[uid]
}

func (r *rotations) set(uid types.UID, rotation int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[uid] = rotation
}

// Observe reports whether the token exists and is fresh.
func (a *clusterAuth) Observe(_ context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	text, _, _ := unstructured.NestedString(toUnstructured(mg).Object, "status", "atProvider", "lastRefreshTime")
	if meta.WasDeleted(mg) || text == "" {
		return managed.ExternalObservation{}, nil
	}
	refreshed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return managed.ExternalObservation{}, fmt.Errorf("cannot parse lastRefreshTime: %w", err)
	}
	period := defaultRefreshPeriod
	if text, _, _ := unstructured.NestedString(toUnstructured(mg).Object, "spec", "forProvider", "refreshPeriod"); text != "" {
		if period, err = time.ParseDuration(text); err != nil {
			return managed.ExternalObservation{}, fmt.Errorf("cannot parse the refreshPeriod: %w", err)
		}
	}
	if time.Since(refreshed) > period || a.seen.get(mg.GetUID()) != a.cloud.currentRotation() {
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	mg.SetConditions(xpv2.Available())
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// Create creates a token. It writes the status, as the provider does, because the reconciler does not write it after a
// create.
func (a *clusterAuth) Create(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	connection, err := a.renew(ctx, mg)
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	if err := a.hub.Status().Update(ctx, mg); err != nil {
		return managed.ExternalCreation{}, fmt.Errorf("cannot update the status: %w", err)
	}
	return managed.ExternalCreation{ConnectionDetails: connection}, nil
}

// Update creates another token.
func (a *clusterAuth) Update(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	connection, err := a.renew(ctx, mg)
	return managed.ExternalUpdate{ConnectionDetails: connection}, err
}

// Delete does nothing.
func (a *clusterAuth) Delete(context.Context, resource.Managed) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

// Disconnect does nothing: there is no connection.
func (a *clusterAuth) Disconnect(context.Context) error { return nil }

func (a *clusterAuth) renew(ctx context.Context, mg resource.Managed) (managed.ConnectionDetails, error) {
	rotation := a.cloud.currentRotation()
	found, err := a.cloud.read(a.id)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("cannot describe cluster: ResourceNotFoundException: there is no %s", a.id.id)
	}
	connection, err := found.connection(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	if err := unstructured.SetNestedField(toUnstructured(mg).Object, now, "status", "atProvider", "lastRefreshTime"); err != nil {
		return nil, fmt.Errorf("cannot set lastRefreshTime: %w", err)
	}
	a.seen.set(mg.GetUID(), rotation)
	mg.SetConditions(xpv2.Available())
	return connection, nil
}
