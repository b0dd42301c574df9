// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/masthead-dev/masthead/test/localfleet"
)

func newRootCommand() *cobra.Command {
	var dir string
	root := &cobra.Command{
		Use:   "localfleet",
		Short: "Run a fleet of real control planes on this machine",
		Long: `localfleet runs a hub (Kubernetes control plane, Crossplane, Cluster API) and workload clusters (Kubernetes control planes
with simulated nodes) as processes on this machine. Everything listens on loopback ports and lives in one folder.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&dir, "dir", localfleet.DefaultDir, "folder of the fleet")
	root.AddCommand(newUpCommand(&dir), newAddCommand(&dir), newStatusCommand(&dir), newDownCommand(&dir))
	for _, command := range clusterCommands {
		root.AddCommand(newClusterCommand(&dir, command))
	}
	return root
}

// clusterCommand is a command that does one thing to one cluster.
type clusterCommand struct {
	use, short, done string
	run              func(*localfleet.Fleet, context.Context, string) error
}

var clusterCommands = []clusterCommand{
	{"remove NAME", "Delete a workload cluster from the hub and stop it", "removed", (*localfleet.Fleet).Remove},
	{"pause NAME", "Stop the API server of a cluster (SIGSTOP): it accepts connections and never answers", "paused", (*localfleet.Fleet).Pause},
	{"resume NAME", "Continue the API server of a paused cluster", "resumed", (*localfleet.Fleet).Resume},
	{"rotate NAME", "Replace the credentials with which the hub reaches a workload cluster, and revoke the old ones", "has new credentials in the hub", (*localfleet.Fleet).Rotate},
}

func newClusterCommand(dir *string, c clusterCommand) *cobra.Command {
	return &cobra.Command{
		Use:   c.use,
		Short: c.short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			fleet, err := localfleet.Load(cmd.Context(), *dir, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := c.run(fleet, cmd.Context(), arguments[0]); err != nil {
				return err
			}
			say(cmd, "%s %s\n", arguments[0], c.done)
			return nil
		},
	}
}

// say prints to the standard output; progress goes to the standard error.
func say(cmd *cobra.Command, format string, arguments ...any) {
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), format, arguments...)
}
