// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
	"github.com/masthead-dev/masthead/internal/version"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// Exit codes. kubectl ends with 1 in both cases; a script can tell them apart here.
const (
	exitFailed  = 1
	exitMisused = 2
)

// Options are the environment of a run.
type Options struct {
	Arguments []string
	Streams   genericiooptions.IOStreams
	Getenv    func(string) string
	Clock     clock.PassiveClock
}

// Run runs one command, and returns the exit code.
func Run(ctx context.Context, o Options) int {
	root, begun := newRoot(o), false
	understand(root, &begun)
	root.SetArgs(o.Arguments)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var misused *misusedError
	if begun && !errors.As(err, &misused) {
		_, _ = fmt.Fprintln(o.Streams.ErrOut, "error:", terminal.Clean(err.Error()))
		return exitFailed
	}
	text := fmt.Sprintf("error: %v\nSee '%s --help' for usage.", err, cmd.CommandPath())
	for line := range strings.SplitSeq(text, "\n") { // cobra suggests commands in lines of their own.
		suggested := strings.TrimPrefix(line, "\t")
		_, _ = fmt.Fprintln(o.Streams.ErrOut, line[:len(line)-len(suggested)]+terminal.Clean(suggested))
	}
	return exitMisused
}

// understand has all commands below root set begun when they have been understood: an error before that is one of
// usage, whichever part of cobra found it. A command of commands refuses what it does not have, which cobra would
// answer with its help, and success.
func understand(root *cobra.Command, begun *bool) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		if run := cmd.RunE; run != nil {
			cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
				*begun = true
				return run(cmd, arguments)
			}
		}
		if cmd.HasParent() && cmd.HasSubCommands() {
			cmd.Args, cmd.DisableFlagsInUseLine, cmd.SuggestionsMinimumDistance = oneCommand, true, 2
			cmd.RunE = func(*cobra.Command, []string) error { return nil } // Arguments are checked of what can run only.
		}
		for _, c := range cmd.Commands() {
			each(c)
		}
	}
	each(root)
}

// oneCommand is the error of a command of commands that none of them was found for.
func oneCommand(cmd *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		return fmt.Errorf("specify a command: %s", strings.Join(names, ", "))
	}
	text := fmt.Sprintf("unknown command %q for %q", arguments[0], cmd.CommandPath())
	if like := cmd.SuggestionsFor(arguments[0]); len(like) > 0 {
		text += "\n\nDid you mean this?\n\t" + strings.Join(like, "\n\t") + "\n"
	}
	return errors.New(text)
}

// noArguments is cobra.NoArgs with kubectl's words: an argument is no command.
func noArguments(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("unexpected arguments: %v", arguments)
	}
	return nil
}

// misusedError is a usage error that a command finds when it runs.
type misusedError struct{ err error }

func (e *misusedError) Error() string { return e.err.Error() }

func (e *misusedError) Unwrap() error { return e.err }

func misused(format string, arguments ...any) error {
	return &misusedError{err: fmt.Errorf(format, arguments...)}
}

// app is shared by the commands.
type app struct {
	Options

	kube   *genericclioptions.ConfigFlags
	output string
	allow  credentials.Options
}

func newRoot(o Options) *cobra.Command {
	a := &app{Options: o, kube: kubeFlags()}
	root := &cobra.Command{
		Use:   "kubectl-masthead",
		Short: "See the fleet of workload clusters, and why something in it does not work",
		Long: `kubectl masthead shows the workload clusters that are enrolled in a hub, and what is in them, and explains why something
does not work. The kubeconfig and its context are those of the hub. Commands reach workload clusters with the kubeconfigs in
the hub, if you may read these Secrets, and report it if you may not.`,
		Version:           version.Version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl masthead"},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(o.Streams.In)
	root.SetOut(o.Streams.Out)
	root.SetErr(o.Streams.ErrOut)
	flags := root.PersistentFlags()
	a.kube.AddFlags(flags)
	addAllowed(flags, &a.allow)
	for _, add := range commands() {
		root.AddCommand(add(a))
	}
	return root
}

// commands returns the commands, in the order in which help lists them within a group.
func commands() []func(*app) *cobra.Command {
	return []func(*app) *cobra.Command{newClusters, newWhy, newClaims, newApps, newImports, newTop, newHealth, newConnect, newEnroll, newUnenroll, newDebug}
}

// kubeFlags are kubectl's own flags, without those of no use for a fleet.
func kubeFlags() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(50).WithDiscoveryBurst(300)
	flags.ClusterName, flags.AuthInfoName, flags.Username, flags.Password = nil, nil, nil, nil
	flags.APIServer, flags.CertFile, flags.KeyFile, flags.BearerToken, flags.CAFile, flags.TLSServerName = nil, nil, nil, nil, nil, nil
	flags.Insecure, flags.CacheDir, flags.DisableCompression, flags.ImpersonateUID, flags.ImpersonateUserExtra = nil, nil, nil, nil, nil
	return flags
}

// addAllowed adds the manager's flags for kubeconfigs: what it may connect to with them, this program must allow, too.
func addAllowed(flags *pflag.FlagSet, allow *credentials.Options) {
	flags.BoolVar(&allow.AllowLoopback, "allow-loopback-endpoints", false,
		"Reach workload clusters whose kubeconfig in the hub names a loopback address, as on a developer's machine")
	flags.BoolVar(&allow.AllowInsecureTLS, "allow-insecure-kubeconfig-tls", false,
		"Reach workload clusters whose kubeconfig in the hub has insecure-skip-tls-verify")
	flags.BoolVar(&allow.AllowProxy, "allow-kubeconfig-proxy", false,
		"Reach workload clusters whose kubeconfig in the hub has proxy-url")
}

// hub returns the hub of the kubeconfig.
func (a *app) hub() (*fleet.Hub, error) {
	cfg, err := a.kube.ToRESTConfig()
	if err != nil {
		return nil, misused("cannot use the kubeconfig: %w", err)
	}
	return fleet.NewHub(cfg, a.allow)
}

// namespace returns the one given by -n or the kubeconfig's context.
func (a *app) namespace() (string, error) {
	namespace, _, err := a.kube.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", misused("cannot use the kubeconfig: %w", err)
	}
	return namespace, nil
}
