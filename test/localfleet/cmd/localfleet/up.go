// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/masthead-dev/masthead/test/localfleet"
)

// repositoryRBAC is where the repository keeps what the manager may do in a workload cluster.
const repositoryRBAC = "config/workload"

func newUpCommand(dir *string) *cobra.Command {
	var workloads int
	o := localfleet.Options{WithCrossplane: true, WithClusterAPI: true, WithKwok: true}
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring up a fleet, or add clusters to the running one",
		Long: `Brings up a hub and the workload clusters w1 to wN and leaves them running. Each workload cluster appears in the hub as a Cluster of
Cluster API. If the fleet already runs, only workload clusters that are missing or have died are brought up.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Dir, o.Log, o.Workloads = *dir, cmd.ErrOrStderr(), localfleet.WorkloadNames(workloads)
			rbac, err := defaultWorkloadRBAC(o.WorkloadRBAC)
			if err != nil {
				return err
			}
			o.WorkloadRBAC = rbac
			fleet, err := localfleet.Up(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printFleet(cmd, fleet)
		},
	}
	flags := command.Flags()
	flags.IntVar(&workloads, "workloads", 2, "number of workload clusters")
	flags.StringVar(&o.BinDir, "bin-dir", "", "folder of the control-plane programs (default bin/controlplane in the repository)")
	flags.StringVar(&o.Namespace, "namespace", "default", "namespace of the Cluster objects in the hub")
	flags.StringSliceVar(&o.WorkloadRBAC, "workload-rbac", nil,
		"manifests that give masthead-system/masthead its rights in the workload clusters (default "+repositoryRBAC+" in the repository)")
	flags.StringSliceVar(&o.HubManifests, "hub-manifests", nil, "manifests to apply to the hub before clusters are registered")
	flags.BoolVar(&o.WithCrossplane, "crossplane", o.WithCrossplane, "run Crossplane in the hub")
	flags.BoolVar(&o.WithClusterAPI, "cluster-api", o.WithClusterAPI, "run Cluster API in the hub")
	flags.BoolVar(&o.WithKwok, "kwok", o.WithKwok, "run kwok in the workload clusters")
	flags.BoolVar(&o.Audit, "audit", false, "write an audit log per cluster")
	return command
}

// defaultWorkloadRBAC returns the given paths, or the repository's own folder if there is one.
func defaultWorkloadRBAC(given []string) ([]string, error) {
	if len(given) > 0 {
		return given, nil
	}
	repository, err := localfleet.Repository()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(repository, filepath.FromSlash(repositoryRBAC))
	if _, err := os.Stat(folder); err != nil {
		if os.IsNotExist(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot look for the manifests of the workload clusters: %w", err)
	}
	return []string{folder}, nil
}

// printFleet says where everything is, in a form that can be pasted into a shell.
func printFleet(cmd *cobra.Command, fleet *localfleet.Fleet) error {
	names, err := fleet.Clusters()
	if err != nil {
		return err
	}
	say(cmd, "The fleet is up. Its clusters:\n")
	for _, name := range names {
		say(cmd, "  export KUBECONFIG=%s\n", fleet.Kubeconfig(name))
	}
	say(cmd, "kubectl of the same version: %s\n", filepath.Join(fleet.BinDir(), "kubectl"))
	return nil
}

func newAddCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "add NAME",
		Short: "Bring up one more workload cluster",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			fleet, err := localfleet.Load(cmd.Context(), *dir, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := fleet.Add(cmd.Context(), arguments[0]); err != nil {
				return err
			}
			say(cmd, "%s added: export KUBECONFIG=%s\n", arguments[0], fleet.Kubeconfig(arguments[0]))
			return nil
		},
	}
}
