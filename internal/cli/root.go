// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

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

// Exit codes.
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
	root := newRoot(o)
	root.SetArgs(o.Arguments)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(o.Streams.ErrOut, "error:", terminal.Clean(err.Error()))
	var misused *misusedError
	if errors.As(err, &misused) {
		return exitMisused
	}
	return exitFailed
}

// misusedError is a usage error.
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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misused("%w", err) })
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
