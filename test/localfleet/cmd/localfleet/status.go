// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/masthead-dev/masthead/test/localfleet"
)

func newStatusCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the clusters, their processes and the memory they use",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fleet, err := localfleet.Load(cmd.Context(), *dir, nil)
			if err != nil {
				return err
			}
			statuses, err := fleet.Status(cmd.Context())
			if err != nil {
				return err
			}
			return printStatus(cmd, statuses)
		},
	}
}

func printStatus(cmd *cobra.Command, statuses []localfleet.ClusterStatus) error {
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "CLUSTER\tREADY\tSERVER\tPROCESS\tPID\tSTATE\tMEMORY")
	for _, status := range statuses {
		ready := "yes"
		if !status.Ready {
			ready = "no"
		}
		var total int64
		for _, process := range status.Processes {
			total += process.ResidentBytes
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t\t\t\t%s\n", status.Name, ready, status.Server, megabytes(total))
		for _, process := range status.Processes {
			_, _ = fmt.Fprintf(table, "\t\t\t%s\t%d\t%s\t%s\n", process.Name, process.PID, process.State, megabytes(process.ResidentBytes))
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("cannot print the status: %w", err)
	}
	for _, status := range statuses {
		if !status.Ready {
			say(cmd, "%s is not ready: %s\n", status.Name, status.Reason)
		}
	}
	return nil
}

func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", bytes>>20) }
