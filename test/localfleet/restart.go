// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// previousAPIServer is the name of an API server that Move has left running next to its successor.
const previousAPIServer = APIServer + "-previous"

// RestartOptions say how to restart an API server.
type RestartOptions struct {
	// NewPort starts it on another port. The administrator's kubeconfig and, for a workload cluster, the kubeconfig
	// Secrets in the hub point to that port afterwards, and the cluster's other processes are restarted.
	NewPort bool
}

// Restart ends the API server of a cluster at once, if it runs, and starts it again on the same data. It returns when
// the API server is ready.
func (f *Fleet) Restart(ctx context.Context, name string, o RestartOptions) error {
	c, unlock, err := f.lockForStart(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if record, found := c.process(APIServer); found {
		if err = stopProcess(ctx, record.processIdentity, 0); err != nil {
			return err
		}
	}
	if o.NewPort {
		return f.startOnNewPort(ctx, c)
	}
	apiServer, err := c.apiServer()
	if err != nil {
		return err
	}
	return c.startServer(ctx, apiServer)
}

// Move starts a second API server for a cluster, on another port and on the same data, and redirects all clients to it
// as Restart with NewPort does. The first keeps running until the returned function is called, so that clients that
// follow the kubeconfig can switch over without a gap.
func (f *Fleet) Move(ctx context.Context, name string) (stopPrevious func(context.Context) error, err error) {
	c, unlock, err := f.lockForStart(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if previous, found := c.process(previousAPIServer); found && previous.alive() {
		return nil, fmt.Errorf("cluster %q was moved already, and its previous API server still runs", name)
	}
	record, found := c.process(APIServer)
	if !found || !record.alive() {
		return nil, fmt.Errorf("the API server of cluster %q does not run", name)
	}
	previous := record
	previous.Name = previousAPIServer
	if err := c.update(func(state *clusterState) { state.setProcess(previous) }); err != nil {
		return nil, err
	}
	if err := f.startOnNewPort(ctx, c); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return f.stopPrevious(ctx, name) }, nil
}

func (f *Fleet) stopPrevious(ctx context.Context, name string) error {
	c, unlock, err := f.lockCluster(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	previous, found := c.process(previousAPIServer)
	if !found {
		return nil
	}
	if err := stopProcess(ctx, previous.processIdentity, stopGrace); err != nil {
		return err
	}
	return c.update(func(state *clusterState) { state.removeProcess(previousAPIServer) })
}

func (f *Fleet) lockForStart(ctx context.Context, name string) (*cluster, func(), error) {
	if err := f.checkOwner(); err != nil {
		return nil, nil, err
	}
	return f.lockCluster(ctx, name)
}

func (f *Fleet) startOnNewPort(ctx context.Context, c *cluster) error {
	f.allocator.reserve(c.ports()[portAPIServer])
	c.forgetPorts([]string{portAPIServer})
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
	if c.isHub() {
		return c.restartClients(ctx)
	}
	if err := f.redirect(ctx, c); err != nil {
		return err
	}
	return c.restartClients(ctx)
}

// restartClients restarts the cluster's own processes that read the address of the API server when they start.
func (c *cluster) restartClients(ctx context.Context) error {
	clients := map[string]func() (server, error){
		ControllerManager: c.controllerManager, Kwok: c.kwok, Crossplane: c.crossplane, ClusterAPI: c.clusterAPI,
	}
	var steps []func(context.Context) error
	for name, newServer := range clients {
		record, found := c.process(name)
		if !found {
			continue
		}
		steps = append(steps, func(ctx context.Context) error {
			if err := stopProcess(ctx, record.processIdentity, 0); err != nil {
				return err
			}
			s, err := newServer()
			if err != nil {
				return err
			}
			return c.startServer(ctx, s)
		})
	}
	return inParallel(ctx, steps...)
}

// redirect changes the address in the kubeconfig Secrets and the Cluster objects in the hub; the credentials stay the
// same.
func (f *Fleet) redirect(ctx context.Context, c *cluster) error {
	e, err := c.endpoint()
	if err != nil {
		return err
	}
	hub, secrets, err := f.kubeconfigSecrets(ctx, c.name)
	if err != nil {
		return err
	}
	for i := range secrets {
		secret := &secrets[i]
		config, err := clientcmd.Load(secret.Data[secretKey])
		if err != nil {
			return fmt.Errorf("cannot parse the kubeconfig in Secret %s/%s of the hub: %w", secret.Namespace, secret.Name, err)
		}
		for _, entry := range config.Clusters {
			entry.Server = e.server
		}
		data, err := clientcmd.Write(*config)
		if err != nil {
			return fmt.Errorf("cannot encode the kubeconfig for Secret %s/%s of the hub: %w", secret.Namespace, secret.Name, err)
		}
		secret.Data[secretKey] = data
		if _, err := hub.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: string(fieldManager)}); err != nil {
			return fmt.Errorf("cannot update Secret %s/%s in the hub: %w", secret.Namespace, secret.Name, err)
		}
	}
	return f.redirectClusters(ctx, c)
}
