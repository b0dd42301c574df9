// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/masthead-dev/masthead/internal/cli/terminal"
)

// Formats of the flag --output.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
	outputYAML  = "yaml"
)

func formats() []string { return []string{outputTable, outputWide, outputJSON, outputYAML} }

// withOutput adds the flag --output to a command.
func (a *app) withOutput(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVarP(&a.output, "output", "o", outputTable, "Output format: "+strings.Join(formats(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(formats(), a.output) {
			return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: %s", a.output, strings.Join(formats(), ","))
		}
		return nil
	}
	return cmd
}

// print writes a value as the flag --output says. text writes it for users.
func (a *app) print(value any, text func(wide bool) error) error {
	switch a.output {
	case outputJSON:
		return terminal.WriteJSON(a.Streams.Out, value)
	case outputYAML:
		return terminal.WriteYAML(a.Streams.Out, value)
	default:
		return text(a.output == outputWide)
	}
}

// note reports something besides the answer. It writes to standard error, so that it does not end up in a pipe.
func (a *app) note(format string, arguments ...any) {
	_, _ = fmt.Fprintln(a.Streams.ErrOut, terminal.Clean(fmt.Sprintf(format, arguments...)))
}

// ago returns how long ago something was, as kubectl shows it.
func (a *app) ago(t time.Time) string { return duration.HumanDuration(a.Clock.Since(t)) }
