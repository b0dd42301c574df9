// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
)

func newClusters(a *app) *cobra.Command {
	return a.withOutput(&cobra.Command{
		Use:     "clusters [NAME]",
		Aliases: []string{"cluster"},
		Short:   "Show the enrolled clusters, and whether Masthead works in them",
		Long: `Show the clusters that are enrolled in the hub: whether Masthead is connected to them and, if something is not as it should
be, the reason. This is what their ClusterProfiles report. An enrolled object without one is Unknown.`,
		Example: `  # The fleet
  kubectl masthead clusters

  # With messages and identifiers
  kubectl masthead clusters -o wide

  # The names of those to which there is no connection
  kubectl masthead clusters -o json | jq -r '.[] | select(.state != "Connected") | .name'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeClusters,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			hub, err := a.hub()
			if err != nil {
				return err
			}
			clusters, err := hub.Clusters(cmd.Context())
			if err != nil {
				return err
			}
			if len(arguments) == 1 {
				found, err := fleet.Find(clusters, arguments[0])
				if err != nil {
					return err
				}
				clusters = []fleet.Cluster{*found}
			}
			return a.print(clusters, func(wide bool) error {
				if len(clusters) == 0 {
					a.note("No cluster is enrolled. `kubectl masthead enroll NAME` enrols a Cluster of Cluster API, and `kubectl masthead connect NAME` any other.")
					return nil
				}
				return a.clusterTable(clusters, wide).Write(a.Streams.Out)
			})
		},
	})
}

func (a *app) clusterTable(clusters []fleet.Cluster, wide bool) terminal.Table {
	t := terminal.Table{Columns: []string{"NAME", "STATE", "REASON", "CLASS", "VERSION", "LAST SEEN"}}
	if wide {
		t.Columns = append(t.Columns, "IDENTIFIER", "MESSAGE")
	}
	for _, c := range clusters {
		seen := "<unknown>"
		switch {
		case c.State == fleet.StateConnected:
			seen = "now"
		case c.LastSeen != nil:
			seen = a.ago(*c.LastSeen) + " ago"
		}
		row := []string{c.Name, string(c.State), c.Reason, c.Class, c.Version, seen}
		if wide {
			row = append(row, c.Identifier, c.Message)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// completeClusters completes the names of the clusters.
func (a *app) completeClusters(cmd *cobra.Command, arguments []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeClusterFlag(cmd, arguments, "")
}

// completeClusterFlag completes the names of the clusters for a flag, regardless of the arguments.
func (a *app) completeClusterFlag(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	hub, err := a.hub()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	clusters, err := hub.Clusters(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, terminal.Clean(c.Name))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
