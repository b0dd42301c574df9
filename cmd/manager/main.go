// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/masthead-dev/masthead/internal/processmetrics"
	"github.com/masthead-dev/masthead/internal/version"
)

// Exit codes.
const (
	exitFailed  = 1
	exitMisused = 2
)

func main() {
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is main with its dependencies injected. It returns the exit code.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	in, err := parse(args, env, stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "manager:", err)
		return exitMisused
	case in.Version:
		_, _ = fmt.Fprintln(stdout, version.Version)
		return 0
	}
	limit, err := limitMemory(memlimit.FromCgroup)
	if in.Options.MemoryBudgetMiB == 0 {
		in.Options.MemoryBudgetMiB = int(memoryBudget(limit) / mebibyte)
	}
	log, level := newLogger(in.Options.Log, stderr)
	if err != nil {
		log.Info("Cannot tell the memory limit of the container", "reason", err.Error())
	}
	log.Info("Starting Masthead", "version", version.Version, "memoryLimitBytes", limit, "memoryBudgetMiB", in.Options.MemoryBudgetMiB)
	if err := serve(ctx, in.Options, log, level); err != nil {
		log.Error(err, "Stopping Masthead")
		return exitFailed
	}
	log.Info("Stopping Masthead")
	return 0
}

// serve runs the manager until ctx ends.
func serve(ctx context.Context, o Options, log logr.Logger, level http.Handler) (err error) {
	cfg, err := hubConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	useLogger(log)
	processmetrics.RegisterBuildInfo(metrics.Registry)
	h := newHealth(processmetrics.NewReady(metrics.Registry))
	stop, err := h.listen(ctx, o.Health.BindAddress)
	if err != nil {
		return err
	}
	defer stop()
	parent := ctx
	ctx, stopMetrics, err := serveMetrics(ctx, cfg, o.Metrics, level)
	if err != nil {
		return err
	}
	defer stopMetrics()
	defer func() {
		if ctx.Err() != nil && parent.Err() == nil {
			err = errors.Join(context.Cause(ctx), err)
		}
	}()

	hub, err := newHubQuestions(cfg)
	if err != nil {
		return err
	}
	if err := preflight(ctx, hub, o, h, log); err != nil {
		return nil // It fails only when ctx has ended.
	}
	identity, err := hubIdentity(ctx, cfg, o.Hub)
	if err != nil {
		return err
	}
	log.Info("Connecting as a hub", "identity", identity.ID, "name", identity.Name)
	mgr, err := setup(cfg, o, h, identity)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// hubConfig returns the client configuration for the hub.
func hubConfig(kubeconfig string) (*rest.Config, error) {
	var cfg *rest.Config
	var err error
	if kubeconfig == "" {
		cfg, err = ctrl.GetConfig()
	} else {
		cfg, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot load the client configuration for the hub: %w", err)
	}
	// The hub's API server has its own fairness (API Priority and Fairness); a limit here would only delay the requests of
	// all clusters alike.
	cfg.QPS = -1
	cfg.UserAgent = "masthead/" + version.Version
	return cfg, nil
}
