// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import "context"

// startControlPlane starts etcd, the API server and the controller manager, and returns when the API server is ready
// and the controller manager works. afterAPIServer, if not nil, runs while the controller manager starts.
func (c *cluster) startControlPlane(ctx context.Context, afterAPIServer func(context.Context) error) error {
	if err := c.startServer(ctx, c.etcdServer()); err != nil {
		return err
	}
	apiServer, err := c.apiServer()
	if err != nil {
		return err
	}
	if err := c.startServer(ctx, apiServer); err != nil {
		return err
	}
	if err := c.writeAdminKubeconfig(); err != nil {
		return err
	}
	c.fleet.logf("%s: the API server is ready at %s", c.name, apiServerURL(c.ports()[portAPIServer]))

	steps := []func(context.Context) error{func(ctx context.Context) error {
		controllerManager, err := c.controllerManager()
		if err != nil {
			return err
		}
		return c.startServer(ctx, controllerManager)
	}}
	if afterAPIServer != nil {
		steps = append(steps, afterAPIServer)
	}
	return inParallel(ctx, steps...)
}
