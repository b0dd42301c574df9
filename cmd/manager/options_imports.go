// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/masthead-dev/masthead/pkg/controllers/importer"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/limits"
)

// ImportOptions configure ClusterImports.
type ImportOptions struct {
	// Enabled runs the ClusterImport controller, which is idle until there is a ClusterImport.
	Enabled bool `json:"enabled"`

	// Workers is how many ClusterImports are reconciled at once.
	Workers int `json:"workers"`

	// AllowedTokenEndpoints are the only URLs from which tokens for imported clusters may be requested. One that ends in
	// "/" allows every path below it.
	AllowedTokenEndpoints []string `json:"allowedTokenEndpoints"`

	// AllowedServers are the only URLs of API servers that a ClusterImport may name in place of the observed one. One that
	// ends in "/" allows every path below it.
	AllowedServers []string `json:"allowedServers"`
}

func defaultImportOptions() ImportOptions {
	return ImportOptions{
		Enabled: true, Workers: importer.DefaultMaxConcurrentReconciles, AllowedTokenEndpoints: token.DefaultAllowedTokenEndpoints(),
	}
}

// bind makes a flag of each option.
func (o *ImportOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.Enabled, "imports", o.Enabled, "reconcile ClusterImports, which need the rights of config/imports")
	f.IntVar(&o.Workers, "import-workers", o.Workers, "number of ClusterImports that are reconciled concurrently")
	f.StringSliceVar(&o.AllowedTokenEndpoints, "allowed-token-endpoints", o.AllowedTokenEndpoints,
		`URLs from which tokens for imported clusters may be requested; with a final "/", all paths below`)
	f.StringSliceVar(&o.AllowedServers, "allowed-import-servers", o.AllowedServers,
		`URLs that a ClusterImport may name as its API server; with a final "/", all paths below`)
}

// validate reports what is wrong.
func (o *ImportOptions) validate(problem func(wrong bool, format string, args ...any)) {
	problem(o.Workers < 1, "import-workers: must be at least 1")
	_, err := token.ParseAllowed(o.AllowedTokenEndpoints)
	problem(err != nil, "allowed-token-endpoints: %v", err)
	_, err = token.ParseAllowed(o.AllowedServers)
	problem(err != nil, "allowed-import-servers: %v", err)
}

// setupImports adds the importer if it is enabled.
func setupImports(local manager.Manager, o Options, registerer prometheus.Registerer, memory *limits.Budget) error {
	if !o.Imports.Enabled {
		return nil
	}
	err := importer.SetupWithManager(local, importer.Options{
		Credentials:           o.Connections.credentials(),
		AllowedTokenEndpoints: o.Imports.AllowedTokenEndpoints, AllowedServers: o.Imports.AllowedServers,
		MaxConcurrentReconciles: o.Imports.Workers, Registerer: registerer, Budget: memory,
	})
	if err != nil {
		return fmt.Errorf("cannot set up imports: %w", err)
	}
	return nil
}

// newImportReader reads ClusterImports for the Cluster API source; nil if the importer is disabled.
func newImportReader(local manager.Manager, o ImportOptions) client.Reader {
	if !o.Enabled {
		return nil
	}
	return local.GetClient()
}
