// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/masthead-dev/masthead/test/localfleet"
)

func newDownCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the fleet and remove its files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fleet, err := localfleet.Load(cmd.Context(), *dir, cmd.ErrOrStderr())
			if errors.Is(err, localfleet.ErrNoFleet) {
				return stopLeftovers(cmd, *dir)
			}
			if err != nil {
				return err
			}
			return fleet.Down(cmd.Context())
		},
	}
}

func stopLeftovers(cmd *cobra.Command, dir string) error {
	stopped, err := localfleet.StopLeftovers(cmd.Context(), dir)
	if err != nil {
		return err
	}
	say(cmd, "There is no fleet in %s; %d processes of an earlier one were stopped.\n", dir, stopped)
	return nil
}
