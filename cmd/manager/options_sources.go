// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/masthead-dev/masthead/pkg/providers/capi"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
	"github.com/masthead-dev/masthead/pkg/providers/kubeconfig"
)

// defaultSources are the sources of clusters that are used by default. They are never derived from what the hub serves:
// a hub whose Cluster API is missing for a moment, during an upgrade, would look like one that never had it.
func defaultSources() []string { return []string{capi.SourceName, kubeconfig.SourceName} }

// sourceNames are the available sources of clusters.
func sourceNames() []string { return append(defaultSources(), clusterprofile.SourceName) }

// ClusterProfileOptions are whose credentials plugins provide.
type ClusterProfileOptions struct {
	// AccessConfig names a file with the plugins of access providers, in the format of cluster-inventory-api. Empty: none.
	AccessConfig string `json:"accessConfig"`

	// PluginNamespaces of the hub are those for whose ClusterProfiles plugins are run. Who may write these has the
	// credentials sent to any server.
	PluginNamespaces []string `json:"pluginNamespaces"`
}

// bindSources makes flags of the sources.
func (o *Options) bindSources(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Sources, "sources", o.Sources,
		"where enrolled clusters come from: capi (Clusters of Cluster API), kubeconfig (Secrets), "+
			"clusterprofile (other managers' ClusterProfiles); without capi the hub needs no Cluster API")
	c := &o.ClusterProfiles
	f.StringVar(&c.AccessConfig, "cluster-profile-access-config", c.AccessConfig,
		"exec plugins of access providers, in cluster-inventory-api's format")
	f.StringSliceVar(&c.PluginNamespaces, "cluster-profile-plugin-namespaces", c.PluginNamespaces,
		"namespaces whose ClusterProfiles may use them")
}

// validateSources reports what is wrong.
func (o *Options) validateSources(problem func(wrong bool, format string, args ...any)) {
	problem(len(o.Sources) == 0, "sources: at least one of %s is needed", strings.Join(sourceNames(), ", "))
	for _, name := range o.Sources {
		problem(!slices.Contains(sourceNames(), name), "sources: %q is not one of %s", name, strings.Join(sourceNames(), ", "))
	}
	c := o.ClusterProfiles
	problem((c.AccessConfig == "") != (len(c.PluginNamespaces) == 0),
		"cluster-profile-access-config and cluster-profile-plugin-namespaces: each needs the other")
	problem(c.AccessConfig != "" && !o.uses(clusterprofile.SourceName),
		"cluster-profile-access-config: it is for the source %s", clusterprofile.SourceName)
	for _, ns := range c.PluginNamespaces {
		problem(len(validation.IsDNS1123Label(ns)) > 0,
			"cluster-profile-plugin-namespaces: %q is not the name of a namespace", ns)
	}
}

// uses reports whether clusters come from a source.
func (o *Options) uses(source string) bool { return slices.Contains(o.Sources, source) }
