// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"

	"k8s.io/client-go/rest"
)

// startWorkload brings a new workload cluster up, with its node and the rights of the service account whose token the
// hub gets, but does not register it in the hub.
func (f *Fleet) startWorkload(ctx context.Context, name string) (*cluster, error) {
	c, err := f.newCluster(name)
	if err != nil {
		return nil, err
	}
	if err := c.startControlPlane(ctx, c.setUpWorkload); err != nil {
		return nil, err
	}
	return c, nil
}

// setUpWorkload sets up what a workload cluster needs once its API server is ready.
func (c *cluster) setUpWorkload(ctx context.Context) error {
	config, err := c.adminConfig()
	if err != nil {
		return err
	}
	if err := ensureServiceAccount(ctx, config); err != nil {
		return err
	}
	if err := c.fleet.applyTo(ctx, c.name, c.fleet.state.WorkloadRBAC); err != nil {
		return err
	}
	if c.fleet.state.WithClusterAPI {
		if err := GrantClusterAPI(ctx, config); err != nil {
			return err
		}
	}
	return c.startKwok(ctx, config)
}

// startKwok gives the cluster a node and starts kwok if the options enable it.
func (c *cluster) startKwok(ctx context.Context, config *rest.Config) error {
	if !c.fleet.state.WithKwok {
		return nil
	}
	if err := applyEmbedded(ctx, config, "workload"); err != nil {
		return err
	}
	kwok, err := c.kwok()
	if err != nil {
		return err
	}
	return c.startServer(ctx, kwok)
}
