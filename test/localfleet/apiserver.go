// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"path/filepath"
)

// auditPolicy records each request once, after it was answered: who requested what and with which result, without
// bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// apiServer runs kube-apiserver as a cluster installer would set it up (RBAC, certificates, service account tokens, the
// default admission plugins), with less of what only large clusters need.
func (c *cluster) apiServer() (server, error) {
	audit, err := c.auditArguments()
	if err != nil {
		return server{}, err
	}
	pki := c.fleet.layout.pki(c.name)
	file := func(name string) string { return filepath.Join(pki, name) }
	return server{
		program: APIServer,
		ports:   []string{portAPIServer},
		arguments: func(ports map[string]int) []string {
			return append([]string{
				"--etcd-servers=https://" + loopback(ports[portEtcd]),
				"--etcd-cafile=" + file(etcdAuthorityName+".crt"),
				"--etcd-certfile=" + file(etcdClientName+".crt"), "--etcd-keyfile=" + file(etcdClientName+".key"),
				"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
				fmt.Sprintf("--secure-port=%d", ports[portAPIServer]),
				"--tls-cert-file=" + file(apiServerName+".crt"), "--tls-private-key-file=" + file(apiServerName+".key"),
				"--client-ca-file=" + file(authorityName+".crt"),
				"--authorization-mode=RBAC",
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + file(signingKeyName+".crt"),
				"--service-account-signing-key-file=" + file(signingKeyName+".key"),
				"--service-cluster-ip-range=" + serviceRange,
				"--allow-privileged=true",
				// The address of the only endpoint is a loopback address, which an Endpoints object must not contain.
				"--endpoint-reconciler-type=none",
				// The pods do not tolerate the taints of a new node, and nothing would remove these taints or the finalizers of
				// volumes, because the controllers that do so are disabled.
				"--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection",
				"--profiling=false",
				"--event-ttl=15m",
				"--shutdown-send-retry-after=false",
			}, audit...)
		},
		environment: c.garbageCollection("50"),
		ready: func(ctx context.Context, ports map[string]int) error {
			client, err := tlsClient(file(authorityName+".crt"), pki, adminName)
			if err != nil {
				return err
			}
			return probe(ctx, client, apiServerURL(ports[portAPIServer])+"/readyz")
		},
	}, nil
}

// garbageCollection is how much a heap may grow, in percent, before its garbage is collected. Unless the fleet is to be
// fast, the percentage is low, because the API server is by far the largest process of a fleet and gets a quarter
// smaller at the cost of some processor time.
func (c *cluster) garbageCollection(percent string) []string {
	if c.fleet.state.Fast {
		percent = "200"
	}
	return []string{"GOGC=" + percent}
}

func (c *cluster) auditArguments() ([]string, error) {
	if !c.fleet.state.Audit {
		return nil, nil
	}
	policy := filepath.Join(c.fleet.layout.cluster(c.name), "audit-policy.yaml")
	if err := writeFile(policy, []byte(auditPolicy)); err != nil {
		return nil, err
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + c.fleet.layout.auditLog(c.name),
		"--audit-log-maxsize=1024",
	}, nil
}
