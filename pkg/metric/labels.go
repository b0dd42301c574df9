// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// The labels of a metric about one cluster.
const (
	// LabelClusterNamespace is the namespace of the object in the hub that enrols the cluster; empty for the hub.
	LabelClusterNamespace = "cluster_namespace"
	// LabelClusterName is the name of that object; "hub" for the hub.
	LabelClusterName = "cluster_name"
	// LabelSource is the source of clusters that found it, such as "capi" or "kubeconfig"; "hub" for the hub.
	LabelSource = "source"
)

// hub is the name of the hub in the labels. No source has that name.
const hub = "hub"

// clusterLabels returns the labels of a cluster in the order of clusterValues.
func clusterLabels() []string {
	return []string{LabelClusterNamespace, LabelClusterName, LabelSource}
}

// ClusterValues returns the label values of a metric about a cluster: those that identify the cluster by its engaged
// name, followed by more. A name that does not have the form "<source>/<namespace>/<name>" is used without a namespace
// and a source, which no other cluster has.
func ClusterValues(cluster mcr.ClusterName, more ...string) []string {
	namespace, name, source := split(cluster)
	return append([]string{namespace, name, source}, more...)
}

// ClusterLabels returns the labels common to all series of a cluster, for deleting these.
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
