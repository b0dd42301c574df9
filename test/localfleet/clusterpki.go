// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"fmt"

	"k8s.io/utils/clock"
)

// Names of the key pairs in a cluster's pki folder.
const (
	authorityName     = "ca"
	etcdAuthorityName = "etcd-ca"
	etcdServerName    = "etcd"
	etcdClientName    = "etcd-client"
	apiServerName     = "kube-apiserver"
	adminName         = "admin"
	signingKeyName    = "service-account"
)

// adminGroup is the group whose members an API server allows to do everything.
const adminGroup = "system:masters"

// serviceRange is the same in every cluster; nothing routes to it.
const (
	serviceRange   = "10.96.0.0/16"
	firstServiceIP = "10.96.0.1"
)

// createPKI creates all keys and certificates that the servers of a cluster and its administrator need. The
// certificates of other users are issued when their kubeconfig is written.
func createPKI(folder, cluster string, c clock.PassiveClock) error {
	ca, err := newAuthority("localfleet "+cluster, c)
	if err != nil {
		return err
	}
	etcdCA, err := newAuthority("localfleet "+cluster+" etcd", c)
	if err != nil {
		return err
	}
	pairs := map[string]func() (keyPair, error){
		authorityName:     func() (keyPair, error) { return ca.keyPair, nil },
		etcdAuthorityName: func() (keyPair, error) { return etcdCA.keyPair, nil },
		etcdServerName:    func() (keyPair, error) { return etcdCA.server("etcd") },
		etcdClientName:    func() (keyPair, error) { return etcdCA.client("kube-apiserver") },
		apiServerName: func() (keyPair, error) {
			return ca.server("kube-apiserver", firstServiceIP,
				"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
		},
		adminName:      func() (keyPair, error) { return ca.client("admin", adminGroup) },
		signingKeyName: newSigningKey,
	}
	for name, create := range pairs {
		pair, err := create()
		if err != nil {
			return err
		}
		if err := pair.write(folder, name); err != nil {
			return fmt.Errorf("cannot keep the keys of cluster %q: %w", cluster, err)
		}
	}
	return nil
}
