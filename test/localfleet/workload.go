// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
)

// startWorkload brings a new workload cluster up, with its node and the rights of the service account whose token the hub
// gets, but does not register it in the hub.
func (f *Fleet) startWorkload(ctx context.Context, name string) (*cluster, error) {
	c, err := f.newCluster(name)
	if err != nil {
		return nil, err
	}
	err = c.startControlPlane(ctx, func(ctx context.Context) error {
		config, err := c.adminConfig()
		if err != nil {
			return err
		}
		if err := ensureServiceAccount(ctx, config); err != nil {
			return err
		}
		if len(f.state.WorkloadRBAC) > 0 {
			if err := Apply(ctx, config, f.state.WorkloadRBAC...); err != nil {
				return err
			}
		}
		if !f.state.WithKwok {
			return nil
		}
		objects, err := embeddedManifests("workload")
		if err != nil {
			return err
		}
		if err := applyObjects(ctx, config, objects); err != nil {
			return err
		}
		kwok, err := c.kwok()
		if err != nil {
			return err
		}
		return c.startServer(ctx, kwok)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
