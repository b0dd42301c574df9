// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/masthead-dev/masthead/pkg/providers/capi"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
	"github.com/masthead-dev/masthead/pkg/providers/kubeconfig"
)

// defaultSources are the sources of clusters that are used by default. They are never derived from what the hub serves:
// a hub whose Cluster API is missing for a moment, during an upgrade, would look like one that never had it.
func defaultSources() []string { return []string{capi.SourceName, kubeconfig.SourceName} }

// sourceNames are the available sources of clusters.
func sourceNames() []string { return append(defaultSources(), clusterprofile.SourceName) }

// bindSources makes a flag of the sources.
func (o *Options) bindSources(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Sources, "sources", o.Sources,
		"where enrolled clusters come from: capi (Clusters of Cluster API), kubeconfig (Secrets), "+
			"clusterprofile (ClusterProfiles of other cluster managers); without capi the hub needs no Cluster API")
}

// validateSources reports what is wrong.
func (o *Options) validateSources(problem func(wrong bool, format string, args ...any)) {
	problem(len(o.Sources) == 0, "sources: at least one of %s is needed", strings.Join(sourceNames(), ", "))
	for _, name := range o.Sources {
		problem(!slices.Contains(sourceNames(), name), "sources: %q is not one of %s", name, strings.Join(sourceNames(), ", "))
	}
}

// uses reports whether clusters come from a source.
func (o *Options) uses(source string) bool { return slices.Contains(o.Sources, source) }
