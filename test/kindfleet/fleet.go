// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindfleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// Prefix is the prefix of the clusters' names in kind, so that the clusters of others are not touched.
const Prefix = "masthead-e2e-"

// Options describe the fleet to bring up, and the programs to use.
type Options struct {
	// Dir holds kubeconfigs and certificates. It has to exist.
	Dir string
	// Workloads are the names of the workload clusters.
	Workloads []string
	// BinDir is the folder of kubectl; Kind and Helm are programs.
	BinDir, Kind, Helm string
	// Image is the image of a node.
	Image string
	// Archives is the folder of the images that hack/kindnode/images.sh creates.
	Archives string
	// Log receives the messages of the programs.
	Log io.Writer
}

// Fleet is a hub and its workload clusters in kind.
type Fleet struct{ options Options }

var _ harness.Fleet = (*Fleet)(nil)

// Dir is the folder of the fleet.
func (f *Fleet) Dir() string { return f.options.Dir }

// BinDir is the folder of kubectl.
func (f *Fleet) BinDir() string { return f.options.BinDir }

// Kubeconfig is the path of the administrator's kubeconfig for a cluster.
func (f *Fleet) Kubeconfig(cluster string) string {
	return filepath.Join(f.options.Dir, cluster+".kubeconfig")
}

// Config is the administrator's configuration for a cluster. It has no rate limit.
func (f *Fleet) Config(cluster string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig(cluster))
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig of cluster %q: %w", cluster, err)
	}
	config.QPS = -1
	return config, nil
}

// clusters are the names of all clusters, the hub first.
func (f *Fleet) clusters() []string {
	return append([]string{localfleet.HubName}, f.options.Workloads...)
}

// Up brings a fleet up and returns when every cluster is ready and registered in the hub; Masthead is not installed in
// the hub yet. Clusters with these names that an earlier run has left are removed first.
func Up(ctx context.Context, o Options) (*Fleet, error) {
	f := &Fleet{options: o}
	if err := f.Down(ctx); err != nil {
		return nil, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := f.create(groupCtx, localfleet.HubName, "control-plane", "worker"); err != nil {
			return err
		}
		return f.setUpHub(groupCtx)
	})
	for _, name := range o.Workloads {
		group.Go(func() error {
			if err := f.create(groupCtx, name, "control-plane"); err != nil {
				return err
			}
			return f.setUpWorkload(groupCtx, name)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, name := range o.Workloads {
		if err := f.Register(ctx, localfleet.Registration{Workload: name}); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Down deletes the clusters.
func (f *Fleet) Down(ctx context.Context) error {
	args := []string{"delete", "clusters"}
	for _, name := range f.clusters() {
		args = append(args, Prefix+name)
	}
	_, err := f.run(ctx, nil, f.options.Kind, append(args, "--kubeconfig", filepath.Join(f.options.Dir, "kind.kubeconfig"))...)
	return err
}

// create creates a cluster with one node for each role. The nodes are ready for Pods when it returns.
func (f *Fleet) create(ctx context.Context, cluster string, roles ...string) error {
	config := []byte("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n")
	for _, role := range roles {
		config = fmt.Appendf(config, "- role: %s\n", role)
	}
	_, err := f.run(ctx, config, f.options.Kind, "create", "cluster", "--name", Prefix+cluster,
		"--image", f.options.Image, "--kubeconfig", f.Kubeconfig(cluster), "--config", "-")
	if err != nil {
		return err
	}
	if err := f.waitForNodes(ctx, cluster, len(roles)); err != nil {
		return err
	}
	if err := f.giveNetwork(ctx, cluster); err != nil {
		return fmt.Errorf("cannot give the nodes of cluster %q a network: %w", cluster, err)
	}
	_, err = f.Kubectl(ctx, cluster, "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=3m")
	return err
}

// load loads images of the archive folder into all nodes of a cluster.
func (f *Fleet) load(ctx context.Context, cluster string, names ...string) error {
	for _, name := range names {
		_, err := f.run(ctx, nil, f.options.Kind, "load", "image-archive", filepath.Join(f.options.Archives, name+".tar"), "--name", Prefix+cluster)
		if err != nil {
			return err
		}
	}
	return nil
}

// Kubectl runs kubectl against a cluster.
func (f *Fleet) Kubectl(ctx context.Context, cluster string, args ...string) (string, error) {
	return harness.Kubectl(ctx, f, cluster, args...)
}

// Helm runs helm against a cluster, in Masthead's namespace.
func (f *Fleet) Helm(ctx context.Context, cluster string, args ...string) error {
	_, err := f.run(ctx, nil, f.options.Helm, append([]string{
		"--kubeconfig", f.Kubeconfig(cluster), "--namespace", localfleet.ServiceAccountNamespace,
	}, args...)...)
	return err
}

// run runs a program and returns its standard output. The error contains what the program printed to standard error,
// which is written to the log as well.
func (f *Fleet) run(ctx context.Context, stdin []byte, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	// Otherwise kind would keep its own state in the user's KUBECONFIG, and helm would take its cluster from it.
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(f.options.Dir, "none.kubeconfig"), "HELM_CACHE_HOME="+f.options.Dir,
		"HELM_CONFIG_HOME="+f.options.Dir, "HELM_DATA_HOME="+f.options.Dir)
	var out, problems bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(stdin), &out, io.MultiWriter(&problems, f.options.Log)
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "),
			errors.Join(err, context.Cause(ctx)), strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}
