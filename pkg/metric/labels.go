// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// The labels of a metric that is about one cluster.
const (
	// LabelClusterNamespace is the namespace of the object in the hub that enrols the cluster; empty for the hub.
	LabelClusterNamespace = "cluster_namespace"
	// LabelClusterName is the name of that object; "hub" for the hub.
	LabelClusterName = "cluster_name"
	// LabelSource is the source of clusters that found it, such as "capi" or "kubeconfig"; "hub" for the hub.
	LabelSource = "source"
)

// hub is what the hub is called in the labels. No source is called that.
const hub = "hub"

// clusterLabels returns the labels of a cluster in the order of clusterValues.
func clusterLabels() []string {
	return []string{LabelClusterNamespace, LabelClusterName, LabelSource}
}

// ClusterValues returns the values of the labels of a metric that is about a cluster: those that name the cluster, by
// the name under which it is engaged, and more. A name that is not of the form "<source>/<namespace>/<name>" is a name
// without a namespace and a source, which no other cluster has.
func ClusterValues(cluster mcr.ClusterName, more ...string) []string {
	namespace, name, source := split(cluster)
	return append([]string{namespace, name, source}, more...)
}

// ClusterLabels returns the labels that all series of a cluster have, with which they are deleted.
func ClusterLabels(cluster mcr.ClusterName) prometheus.Labels {
	namespace, name, source := split(cluster)
	return prometheus.Labels{LabelClusterNamespace: namespace, LabelClusterName: name, LabelSource: source}
}

func split(cluster mcr.ClusterName) (namespace, name, source string) {
	if cluster == "" {
		return "", hub, hub
	}
	parts := strings.Split(string(cluster), "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return "", string(cluster), ""
	}
	return parts[1], parts[2], parts[0]
}
