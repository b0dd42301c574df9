// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
)

// crossplaneNamespace is the namespace of Crossplane core.
const crossplaneNamespace = "crossplane-system"

// Names of the ports of Crossplane core.
const (
	portCrossplaneHealth  = "crossplane-health"
	portCrossplaneMetrics = "crossplane-metrics"
)

// crossplane runs Crossplane core. Packages cannot be installed, because there is no registry; the function that
// compositions use is registered by hand (see installFunction). Crossplane's webhooks are off, because they need a
// Service. Crossplane has no flag for the address of its health and metrics ports: they listen on all addresses.
func (c *cluster) crossplane() (server, error) {
	kubeconfig, err := c.writeComponentKubeconfig(Crossplane, Crossplane, adminGroup)
	if err != nil {
		return server{}, err
	}
	certificates := filepath.Join(c.fleet.layout.pki(c.name), Crossplane)
	return server{
		program: Crossplane,
		ports:   []string{portCrossplaneHealth, portCrossplaneMetrics},
		arguments: func(ports map[string]int) []string {
			return []string{
				"core", "start",
				"--package-runtime=External",
				"--xpkg-cache-dir=" + c.fleet.layout.data(c.name, Crossplane),
				fmt.Sprintf("--health-probe-port=%d", ports[portCrossplaneHealth]),
				fmt.Sprintf("--metrics-port=%d", ports[portCrossplaneMetrics]),
				"--max-concurrent-reconciles=20",
			}
		},
		environment: []string{
			"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + crossplaneNamespace, "ENABLE_WEBHOOKS=false",
			"TLS_SERVER_CERTS_DIR=" + certificates, "TLS_CLIENT_CERTS_DIR=" + certificates,
		},
		ready: func(ctx context.Context, ports map[string]int) error {
			return probe(ctx, http.DefaultClient, "http://"+loopback(ports[portCrossplaneHealth])+"/readyz")
		},
	}, nil
}
