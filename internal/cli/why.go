// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/masthead-dev/masthead/internal/cli/look"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
	"github.com/masthead-dev/masthead/internal/cli/why"
)

func newWhy(a *app) *cobra.Command {
	var cluster string
	cmd := a.withOutput(&cobra.Command{
		Use:   "why KIND NAME",
		Short: "Explain why something does not work, the root cause first",
		Long: `Explain why something does not work. The command follows the object to what it depends on, in the workload cluster and in the
hub, down to the deepest failure, and shows that first: the provider's error rather than "not ready".

KIND is cluster, import, class, app, or any kind that kubectl knows: a claim, a CompositeResourceDefinition, an object with
references. Without --cluster, an object of a workload cluster is searched for in all of them. What you may not read, and what
does not respond, is reported.`,
		Example: `  # Why is there no connection to w1?
  kubectl masthead why cluster w1

  # Why is the claim sqldb of the namespace default in w1 not ready?
  kubectl masthead why mysqlinstancerequirement sqldb -n default --cluster w1

  # Why is the Application shop degraded, wherever it is?
  kubectl masthead why app/shop -n shop

  # The first cause, for a script
  kubectl masthead why cluster w1 -o json | jq -r '.causes[0].reason'`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if _, _, err := kindAndName(arguments); err != nil {
				return err
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"cluster", "import", "class", "app", "compositeresourcedefinition"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			kind, name, err := kindAndName(arguments)
			if err != nil {
				return err
			}
			hub, err := a.hub()
			if err != nil {
				return err
			}
			namespace, err := a.namespace()
			if err != nil {
				return err
			}
			clusters, err := hub.Clusters(cmd.Context())
			if err != nil {
				return err
			}
			question := look.Question{Kind: kind, Namespace: namespace, Name: name, Cluster: cluster}
			thing, err := look.New(hub, clusters).Find(cmd.Context(), question)
			if err != nil {
				return err
			}
			answer := why.Explain(thing)
			return a.print(answer, func(bool) error { return a.writeAnswer(answer) })
		},
	})
	cmd.Flags().StringVar(&cluster, "cluster", "", "The workload cluster that has the object")
	_ = cmd.RegisterFlagCompletionFunc("cluster", a.completeClusterFlag)
	return cmd
}

// kindAndName takes KIND NAME and KIND/NAME, as kubectl does.
func kindAndName(arguments []string) (kind, name string, err error) {
	switch len(arguments) {
	case 1:
		if kind, name, ok := strings.Cut(arguments[0], "/"); ok && kind != "" && name != "" {
			return kind, name, nil
		}
	case 2:
		return arguments[0], arguments[1], nil
	}
	return "", "", misused("specify the object: KIND NAME, or KIND/NAME")
}

// writeAnswer writes an answer for users: the causes, what could not be read and only then that nothing else is wrong,
// and the walk.
func (a *app) writeAnswer(answer why.Answer) error {
	colours := terminal.ColoursFor(a.Streams.Out, a.Getenv)
	var b strings.Builder
	switch {
	case len(answer.Causes) > 0:
		writeCause(&b, colours, answer.Causes[0])
	case len(answer.NotLookedAt) == 0:
		fmt.Fprintf(&b, "%s: nothing wrong was found.\n", terminal.Clean(answer.Walk.String()))
	}
	if len(answer.Causes) > 1 {
		b.WriteString("\nAlso:\n\n")
		for _, c := range answer.Causes[1:] {
			writeCause(&b, colours, c)
		}
	}
	if len(answer.NotLookedAt) > 0 {
		if len(answer.Causes) > 0 {
			b.WriteString("\n")
		}
		b.WriteString("Could not be read:\n")
		for _, c := range answer.NotLookedAt {
			fmt.Fprintf(&b, "  %s in %s: %s\n", terminal.Clean(c.String()), terminal.Clean(c.Where), terminal.Clean(c.Message))
		}
		if len(answer.Causes) == 0 {
			b.WriteString("\nNothing wrong was found in what could be read.\n")
		}
	}
	b.WriteString("\n")
	if _, err := fmt.Fprint(a.Streams.Out, b.String()); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	return newBranch(colours, answer.Walk).Write(a.Streams.Out)
}

func writeCause(b *strings.Builder, colours terminal.Colours, c why.Cause) {
	fmt.Fprintf(b, "%s: %s in %s: %s\n", stateColour(colours, c.State)(c.State), terminal.Clean(c.String()), terminal.Clean(c.Where), terminal.Clean(c.Reason))
	for _, line := range []string{c.Message, c.Advice} {
		if line = terminal.Clean(line); line != "" {
			fmt.Fprintf(b, "  %s\n", line)
		}
	}
}

// newBranch returns a part of the walk as a line of a tree.
func newBranch(colours terminal.Colours, n why.Node) terminal.Branch {
	b := terminal.Branch{Line: words(terminal.Clean(n.String()), colours.Faint("("+terminal.Clean(n.Where)+")"),
		stateColour(colours, n.State)(n.State), terminal.Clean(n.Reason), terminal.Clean(n.Note))}
	for _, need := range n.Needs {
		b.Branches = append(b.Branches, newBranch(colours, need))
	}
	return b
}

func stateColour(colours terminal.Colours, state string) func(string) string {
	switch state {
	case why.Fine.String():
		return colours.Good
	case why.Failed.String():
		return colours.Bad
	default:
		return colours.Middling
	}
}

// words joins the non-empty texts with spaces.
func words(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), " ")
}
