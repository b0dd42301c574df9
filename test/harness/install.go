// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/test/localfleet"
)

// Fleet is a hub and workload clusters, wherever they run: as processes of this machine (test/localfleet), or in nodes
// of kind (test/kindfleet).
type Fleet interface {
	// Dir is a folder that belongs to the fleet.
	Dir() string
	// BinDir is the folder of the programs that belong to the fleet's Kubernetes version; kubectl is there.
	BinDir() string
	// Kubeconfig is the path of the administrator's kubeconfig for a cluster, localfleet.HubName for the hub, and Config
	// its content.
	Kubeconfig(cluster string) string
	Config(cluster string) (*rest.Config, error)
}

// Kubectl runs the kubectl that belongs to the fleet's Kubernetes version, against one cluster, and returns its
// standard output. The error holds what it printed to standard error.
func Kubectl(ctx context.Context, fleet Fleet, cluster string, args ...string) (string, error) {
	return kubectl(ctx, fleet, cluster, nil, args...)
}

// Apply applies YAML to one cluster, server-side.
func Apply(ctx context.Context, fleet Fleet, cluster, yaml string) error {
	_, err := kubectl(ctx, fleet, cluster, []byte(yaml), "apply", "--server-side", "-f", "-")
	return err
}

func kubectl(ctx context.Context, fleet Fleet, cluster string, stdin []byte, args ...string) (string, error) {
	args = append([]string{"--kubeconfig", fleet.Kubeconfig(cluster), "--cache-dir", filepath.Join(fleet.Dir(), "kubectl-cache", cluster)}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(fleet.BinDir(), "kubectl"), args...)
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args[4:], " "), err, strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}

// Install installs Masthead in the hub as its README describes, and the samples for the claims of the tests: the sample
// API of the fleet, the rights for its group, the namespace "bar" and the EnrollmentClass "default" that targets it.
func Install(ctx context.Context, fleet Fleet) error {
	if err := InstallManifests(ctx, fleet); err != nil {
		return err
	}
	return InstallSamples(ctx, fleet)
}

// InstallSamples installs in the hub the samples for the claims of the tests, after Masthead.
func InstallSamples(ctx context.Context, fleet Fleet) error {
	repository, err := localfleet.Repository()
	if err != nil {
		return err
	}
	samples := filepath.Join(repository, "config", "samples", "hub")
	if _, err := Kubectl(ctx, fleet, localfleet.HubName, "apply", "--server-side", "-f", samples); err != nil {
		return fmt.Errorf("cannot install the samples in the hub: %w", err)
	}
	config, err := fleet.Config(localfleet.HubName)
	if err != nil {
		return err
	}
	return localfleet.InstallSamples(ctx, config)
}

// InstallManifests installs Masthead in the hub, and the namespace "bar" for claims. It installs neither a class nor a
// claim kind.
func InstallManifests(ctx context.Context, fleet Fleet) error {
	repository, err := localfleet.Repository()
	if err != nil {
		return err
	}
	manifests := filepath.Join(repository, "config", "default", "crds-and-rights")
	if _, err := Kubectl(ctx, fleet, localfleet.HubName, "apply", "--server-side", "-k", manifests); err != nil {
		return fmt.Errorf("cannot install Masthead in the hub: %w", err)
	}
	if err := Apply(ctx, fleet, localfleet.HubName, targetNamespace); err != nil {
		return fmt.Errorf("cannot create the target namespace: %w", err)
	}
	return nil
}

// targetNamespace is the namespace to which the sample EnrollmentClass sends the claims of its clusters.
const targetNamespace = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bar"}}`

// ManagerKubeconfig writes a kubeconfig for the manager's service account and returns its path.
func ManagerKubeconfig(ctx context.Context, fleet *localfleet.Fleet) (string, error) {
	token, err := Kubectl(ctx, fleet, localfleet.HubName,
		"create", "token", "masthead", "--namespace", "masthead-system", "--duration", "24h")
	if err != nil {
		return "", fmt.Errorf("cannot create a token for the manager: %w", err)
	}
	path := filepath.Join(fleet.Dir(), "manager.kubeconfig")
	admin, err := os.ReadFile(fleet.Kubeconfig(localfleet.HubName))
	if err != nil {
		return "", err
	}
	data, err := withToken(admin, strings.TrimSpace(token))
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, data, 0o600)
}
