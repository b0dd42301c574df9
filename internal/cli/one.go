// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
)

// ofOne makes a command that takes a single object of the hub as its only argument.
func (a *app) ofOne(cmd *cobra.Command, run func(ctx context.Context, hub *fleet.Hub, name string) error) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, arguments []string) error {
		if len(arguments) != 1 {
			return fmt.Errorf("exactly one NAME is required, got %d", len(arguments))
		}
		return nil
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
		hub, err := a.hub()
		if err != nil {
			return err
		}
		return run(cmd.Context(), hub, arguments[0])
	}
	return cmd
}
