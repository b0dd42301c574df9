// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// clusterAPINamespace is the namespace of Cluster API core.
const clusterAPINamespace = "capi-system"

// Names of the ports of Cluster API core.
const (
	portClusterAPIHealth  = "cluster-api-health"
	portClusterAPIWebhook = "cluster-api-webhook"
)

// clusterAPI runs Cluster API core. Its webhook server has to run, on all addresses, but no webhook is configured in
// the hub: objects of the storage version need no conversion, and the fleet's own Clusters need no defaults.
func (c *cluster) clusterAPI() (server, error) {
	kubeconfig, err := c.writeComponentKubeconfig(ClusterAPI, ClusterAPI, adminGroup)
	if err != nil {
		return server{}, err
	}
	ca, err := loadAuthority(c.fleet.layout.pki(c.name), authorityName, c.fleet.clock)
	if err != nil {
		return server{}, err
	}
	certificates := filepath.Join(c.fleet.layout.pki(c.name), ClusterAPI)
	if err = os.MkdirAll(certificates, 0o700); err != nil {
		return server{}, fmt.Errorf("cannot create a folder for certificates: %w", err)
	}
	pair, err := ca.server(ClusterAPI)
	if err != nil {
		return server{}, err
	}
	if err := pair.write(certificates, "tls"); err != nil {
		return server{}, err
	}
	return server{
		program: ClusterAPI,
		ports:   []string{portClusterAPIHealth, portClusterAPIWebhook},
		arguments: func(ports map[string]int) []string {
			return []string{
				"--kubeconfig=" + kubeconfig,
				"--leader-elect=false",
				"--diagnostics-address=0",
				"--health-addr=" + loopback(ports[portClusterAPIHealth]),
				fmt.Sprintf("--webhook-port=%d", ports[portClusterAPIWebhook]),
				"--webhook-cert-dir=" + certificates,
			}
		},
		environment: []string{"POD_NAMESPACE=" + clusterAPINamespace},
		ready: func(ctx context.Context, ports map[string]int) error {
			return probe(ctx, http.DefaultClient, "http://"+loopback(ports[portClusterAPIHealth])+"/readyz")
		},
	}, nil
}

// GrantClusterAPI gives Cluster API core, through the service account of the manager, what it needs in any workload
// cluster.
func GrantClusterAPI(ctx context.Context, config *rest.Config) error {
	return applyEmbedded(ctx, config, "cluster-api")
}
