// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindfleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// networkMark is the object that marks a node image without a network for Pods. The script hack/kindnode/image.sh adds
// it.
const networkMark = "nodes-without-network"

// networkConfiguration gives each Pod of a node an address of the node's range, as kindnetd would.
const networkConfiguration = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
    "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": %q}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`

// masquerade lets Pods reach what is outside of the cluster, where their addresses are unknown.
const masquerade = `rule="POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -j MASQUERADE"
iptables -t nat -C $rule 2>/dev/null || iptables -t nat -A $rule`

// Node is the container of a cluster's control plane.
func (f *Fleet) Node(cluster string) string { return Prefix + cluster + "-control-plane" }

// Exec runs a shell command in a node.
func (f *Fleet) Exec(ctx context.Context, node, command string) (string, error) {
	return f.run(ctx, nil, "docker", "exec", node, "sh", "-c", command)
}

type node struct{ name, podRange, address string }

func (f *Fleet) nodes(ctx context.Context, cluster string) ([]node, error) {
	out, err := f.Kubectl(ctx, cluster, "get", "nodes", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}`)
	if err != nil {
		return nil, err
	}
	var nodes []node
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("a node has no range for Pods yet: %q", strings.TrimSpace(line))
		}
		nodes = append(nodes, node{name: fields[0], podRange: fields[1], address: fields[2]})
	}
	return nodes, nil
}

// waitForNodes waits until the cluster has count nodes, each with a range for Pods. kind returns before the last node
// exists, and a wait for all nodes then waits only for the others.
func (f *Fleet) waitForNodes(ctx context.Context, cluster string, count int) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		nodes, err := f.nodes(ctx, cluster)
		last = err
		return err == nil && len(nodes) == count, nil
	})
	if err != nil {
		return fmt.Errorf("cluster %q does not get %d nodes: %w", cluster, count, errors.Join(last, err))
	}
	return nil
}

// giveNetwork configures the network of Pods if the node image brings none.
func (f *Fleet) giveNetwork(ctx context.Context, cluster string) error {
	mark, err := f.Kubectl(ctx, cluster, "get", "configmap", networkMark, "--namespace", "kube-system", "--ignore-not-found", "-o", "name")
	if err != nil || mark == "" {
		return err
	}
	nodes, err := f.nodes(ctx, cluster)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		configuration := fmt.Appendf(nil, networkConfiguration, n.podRange)
		if _, err := f.run(ctx, configuration, "docker", "exec", "--interactive", n.name, "tee", "/etc/cni/net.d/10-pods.conflist"); err != nil {
			return err
		}
		if _, err := f.Exec(ctx, n.name, masquerade); err != nil {
			return err
		}
		for _, other := range nodes {
			if other == n {
				continue
			}
			if _, err := f.Exec(ctx, n.name, fmt.Sprintf("ip route replace %s via %s", other.podRange, other.address)); err != nil {
				return err
			}
		}
	}
	return nil
}
