// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindfleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// PauseNode freezes everything in a node, as if the machine hung. ResumeNode continues it.
func (f *Fleet) PauseNode(ctx context.Context, node string) error {
	_, err := f.run(ctx, nil, "docker", "pause", node)
	return err
}

// ResumeNode continues a node that PauseNode has frozen.
func (f *Fleet) ResumeNode(ctx context.Context, node string) error {
	_, err := f.run(ctx, nil, "docker", "unpause", node)
	return err
}

// Pause freezes the only node of a workload cluster, with its API server and everything else.
func (f *Fleet) Pause(ctx context.Context, cluster string) error {
	return f.PauseNode(ctx, f.Node(cluster))
}

// Resume continues a cluster that Pause has frozen. A cluster that already runs is left alone.
func (f *Fleet) Resume(ctx context.Context, cluster string) error {
	paused, err := f.run(ctx, nil, "docker", "inspect", "--format", "{{.State.Paused}}", f.Node(cluster))
	if err != nil || strings.TrimSpace(paused) != "true" {
		return err
	}
	return f.ResumeNode(ctx, f.Node(cluster))
}

// Kill ends the only node of a workload cluster at once, as a power failure does.
func (f *Fleet) Kill(ctx context.Context, cluster string) error {
	_, err := f.run(ctx, nil, "docker", "kill", f.Node(cluster))
	return err
}

// Restart starts the only node of a workload cluster again, and returns when its API server is ready. kind's nodes keep
// their addresses then, unless another container takes one.
func (f *Fleet) Restart(ctx context.Context, cluster string) error {
	if _, err := f.run(ctx, nil, "docker", "restart", f.Node(cluster)); err != nil {
		return err
	}
	if _, err := f.Exec(ctx, f.Node(cluster), masquerade); err != nil {
		return err
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = f.Kubectl(ctx, cluster, "get", "--raw", "/readyz")
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("cluster %q does not become ready: %w", cluster, errors.Join(last, err))
	}
	return nil
}

// What happens to packets to an API server.
const (
	// Dropped packets get no answer, as behind a firewall or a broken network.
	Dropped = "-j DROP"
	// Rejected packets get a refusal, as on a port on which nothing listens.
	Rejected = "-j REJECT --reject-with tcp-reset"
)

const toAPIServer = " INPUT -p tcp --dport 6443 ! -i lo "

// CutOff makes the API server of a workload cluster unreachable from outside of its node; Reconnect undoes that.
func (f *Fleet) CutOff(ctx context.Context, cluster, how string) error {
	_, err := f.Exec(ctx, f.Node(cluster), "iptables -I"+toAPIServer+how)
	return err
}

// Reconnect undoes a CutOff that was done in the same way.
func (f *Fleet) Reconnect(ctx context.Context, cluster, how string) error {
	_, err := f.Exec(ctx, f.Node(cluster), "iptables -D"+toAPIServer+how)
	return err
}

// Evict requests the eviction of a Pod, which a PodDisruptionBudget can refuse.
func (f *Fleet) Evict(ctx context.Context, cluster, namespace, pod string) (string, error) {
	eviction := fmt.Appendf(nil, `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": %q}}`, pod, namespace)
	return f.run(ctx, eviction, filepath.Join(f.options.BinDir, "kubectl"), "--kubeconfig", f.Kubeconfig(cluster), "create", "--raw",
		"/api/v1/namespaces/"+namespace+"/pods/"+pod+"/eviction", "-f", "-")
}
