// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// nodeName is the node of every workload cluster, see manifests/workload.
const nodeName = "node-0"

// kwok runs kwok, which plays the kubelet: it makes the node and the pods on it Ready. It renews no leases and sends no
// heartbeats, because nothing in the cluster watches them; an idle cluster stays idle.
func (c *cluster) kwok() (server, error) {
	kubeconfig, err := c.writeComponentKubeconfig(Kwok, Kwok, adminGroup)
	if err != nil {
		return server{}, err
	}
	arguments := []string{"--kubeconfig=" + kubeconfig, "--manage-all-nodes", "--node-lease-duration-seconds=0"}
	for _, stage := range c.fleet.sources.kwokStages {
		arguments = append(arguments, "--config="+stage)
	}
	return server{
		program:   Kwok,
		arguments: func(map[string]int) []string { return arguments },
		ready:     func(ctx context.Context, _ map[string]int) error { return c.probeNode(ctx) },
	}, nil
}

// probeNode returns nil when the node is Ready and a pod would be bound to it.
func (c *cluster) probeNode(ctx context.Context) error {
	config, err := c.adminConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot create a client for cluster %q: %w", c.name, err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot get the node: %w", err)
	}
	if !nodeIsReady(node) {
		return fmt.Errorf("node %q is not Ready", nodeName)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "localfleet-", Namespace: metav1.NamespaceDefault},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "none"}}},
	}
	pod, err = client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("cannot create a pod (dry run): %w", err)
	}
	if pod.Spec.NodeName == "" {
		return fmt.Errorf("pods are not bound to node %q yet", nodeName)
	}
	return nil
}

func nodeIsReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
