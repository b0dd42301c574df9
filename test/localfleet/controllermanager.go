// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// disabledControllers do nothing useful in a cluster with made-up nodes, or need components that a fleet does not have,
// and cost informers and goroutines.
const disabledControllers = "-node-ipam-controller,-node-lifecycle-controller," +
	"-persistentvolume-attach-detach-controller,-persistentvolume-binder-controller," +
	"-persistentvolume-expander-controller,-persistentvolume-protection-controller,-persistentvolumeclaim-protection-controller," +
	"-volumeattributesclass-protection-controller,-ephemeral-volume-controller,-horizontal-pod-autoscaler-controller," +
	"-certificatesigningrequest-signing-controller,-certificatesigningrequest-approving-controller," +
	"-certificatesigningrequest-cleaner-controller,-resourceclaim-controller,-device-taint-eviction-controller," +
	"-taint-eviction-controller,-bootstrap-signer-controller,-token-cleaner-controller"

// controllerManager runs kube-controller-manager: garbage collection, deletion of namespaces, service accounts and the
// controllers of workloads. As in a real cluster, each controller has its own service account with its own rights.
func (c *cluster) controllerManager() (server, error) {
	kubeconfig, err := c.writeComponentKubeconfig(ControllerManager, "system:kube-controller-manager")
	if err != nil {
		return server{}, err
	}
	pki := c.fleet.layout.pki(c.name)
	return server{
		program: ControllerManager,
		arguments: func(map[string]int) []string {
			return []string{
				"--kubeconfig=" + kubeconfig,
				// With leader election it would end when it cannot renew its lease, for example because a test pauses or
				// restarts the only API server.
				"--leader-elect=false",
				"--secure-port=0",
				"--use-service-account-credentials=true",
				"--service-account-private-key-file=" + filepath.Join(pki, signingKeyName+".key"),
				"--root-ca-file=" + filepath.Join(pki, authorityName+".crt"),
				"--controllers=*," + disabledControllers,
				"--profiling=false",
				"--kube-api-qps=200", "--kube-api-burst=400",
			}
		},
		ready: func(ctx context.Context, _ map[string]int) error {
			config, err := c.adminConfig()
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("cannot create a client for cluster %q: %w", c.name, err)
			}
			// The default service account is the first visible result of its work, and pods wait for it.
			_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("cannot get the service account that it should have created: %w", err)
			}
			return nil
		},
	}, nil
}
