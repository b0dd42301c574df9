// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reader reads one cluster's facts.
type reader struct {
	imp      Import
	served   Schemas
	observed Observed
	facts    Facts
	notes    notes
}

// atProvider is what a provider observed of a resource. What the installed provider cannot observe is reported.
func (r *reader) atProvider(mr *unstructured.Unstructured, where string) (block, bool) {
	return atProvider(mr, r.served, where, &r.notes)
}

// readPools reads the pools that are managed resources of their own.
func (r *reader) readPools(kind Kind, names []string, read func(block) NodePool) {
	resources := r.observed.resources(r.imp, kind)
	for _, name := range names {
		if slices.ContainsFunc(r.facts.NodePools, func(p NodePool) bool { return p.Name == name }) {
			continue
		}
		mr := resources[name]
		b, ok := r.atProvider(mr, kind.Kind+"/"+name)
		switch {
		case ok:
			pool := read(b)
			pool.Name = name
			r.facts.NodePools = append(r.facts.NodePools, pool)
		case mr != nil && IsGone(mr):
			r.facts.GoneNodePools = append(r.facts.GoneNodePools, name)
		default:
			r.facts.PendingNodePools = append(r.facts.PendingNodePools, name)
		}
	}
}

// readOwners finds the tags of the cluster that name an owner.
func (r *reader) readOwners(tags map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		switch {
		case strings.HasPrefix(key, "sigs.k8s.io/cluster-api-provider-aws/cluster/"),
			strings.HasPrefix(key, "sigs.k8s.io_cluster-api-provider-azure_cluster_"),
			strings.HasPrefix(key, "capg-cluster-"):
			if tags[key] == "owned" {
				r.facts.ClusterAPITags = append(r.facts.ClusterAPITags, key)
			}
		case strings.HasPrefix(key, "kubernetes.io/cluster/") && tags[key] == "owned",
			key == "crossplane-name": // Crossplane tags what it creates and updates, not what it observes.
			r.facts.OwnerTags = append(r.facts.OwnerTags, clean(key))
		}
	}
}

func (r *reader) cidr(b block, field string) string { return b.cidr(field, b.text(field)) }

func (r *reader) cidrs(b block, fields ...string) []string {
	var out []string
	for _, field := range fields {
		if s := r.cidr(b, field); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// autopilot says that all Nodes are Google's.
func (r *reader) autopilot() bool { return r.facts.GKE.Autopilot != nil && *r.facts.GKE.Autopilot }
