// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kwok is kwok v0.8.0 without a race that ends it. kwok makes a CEL environment for each stage when the first
// node or pod is compared with it. Its library keeps the types of all environments in maps without a lock
// (github.com/wzshiming/easycel v0.6.0, types.go). If the first node and the first pod come at the same time, as when
// kwok is restarted beside pods, Go ends the process: "fatal error: concurrent map read and map write". Here the maps
// are complete before any controller starts, and only read from then on.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/cel"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	if err := fillTypes(); err != nil {
		return err
	}
	global := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	global.ParseErrorsAllowlist.UnknownFlags = true // They belong to the command.
	global.Usage = func() {}
	ctx, _ := log.InitFlags(signals.SetupSignalContext(), global)
	ctx, err := config.InitFlags(ctx, global)
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(global)
	return command.ExecuteContext(ctx)
}

// fillTypes makes an environment with what all stages have in theirs. They differ in the type of their objects, which
// these maps do not keep.
func fillTypes() error {
	_, err := cel.NewEnvironment(cel.EnvironmentConfig{
		Types:       cel.DefaultTypes,
		Conversions: cel.DefaultConversions,
		Methods:     cel.FuncsToMethods(cel.DefaultFuncs),
		Funcs:       cel.DefaultFuncs,
	})
	if err != nil {
		return fmt.Errorf("cannot create a CEL environment: %w", err)
	}
	return nil
}
