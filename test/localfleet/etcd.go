// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"path/filepath"
)

// Names of the ports of a control plane.
const (
	portEtcd      = "etcd"
	portEtcdPeer  = "etcd-peer"
	portAPIServer = "kube-apiserver"
)

// etcdServer runs one etcd member. --unsafe-no-fsync loses data when the machine stops, but not when a process is
// killed, because the kernel holds what was written by then.
func (c *cluster) etcdServer() server {
	pki := c.fleet.layout.pki(c.name)
	file := func(name string) string { return filepath.Join(pki, name) }
	return server{
		program: Etcd,
		ports:   []string{portEtcd, portEtcdPeer},
		arguments: func(ports map[string]int) []string {
			client, peer := "https://"+loopback(ports[portEtcd]), "https://"+loopback(ports[portEtcdPeer])
			return []string{
				"--name=" + c.name,
				"--data-dir=" + c.fleet.layout.data(c.name, Etcd),
				"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
				"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
				"--initial-cluster=" + c.name + "=" + peer,
				"--client-cert-auth", "--trusted-ca-file=" + file(etcdAuthorityName+".crt"),
				"--cert-file=" + file(etcdServerName+".crt"), "--key-file=" + file(etcdServerName+".key"),
				"--peer-client-cert-auth", "--peer-trusted-ca-file=" + file(etcdAuthorityName+".crt"),
				"--peer-cert-file=" + file(etcdServerName+".crt"), "--peer-key-file=" + file(etcdServerName+".key"),
				"--unsafe-no-fsync",
				// A fleet is small and short-lived, so fewer entries are kept in memory and old revisions are removed soon.
				"--snapshot-count=2000", "--auto-compaction-mode=periodic", "--auto-compaction-retention=10m",
				"--log-level=warn",
			}
		},
		environment: c.garbageCollection("100"),
		ready: func(ctx context.Context, ports map[string]int) error {
			client, err := tlsClient(file(etcdAuthorityName+".crt"), pki, etcdClientName)
			if err != nil {
				return err
			}
			return probe(ctx, client, "https://"+loopback(ports[portEtcd])+"/health")
		},
	}
}
