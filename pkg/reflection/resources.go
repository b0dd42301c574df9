// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// resources are managed resources of one kind by external name.
type resources map[string]*unstructured.Unstructured

// Annotations of Crossplane.
const (
	ExternalNameAnnotation  = "crossplane.io/external-name"
	ManagedPausedAnnotation = "crossplane.io/paused"
)

// resources are the observed managed resources of a kind by external name.
func (o Observed) resources(imp Import, kind Kind) resources {
	found := resources{}
	for _, mr := range o.Resources {
		if mr == nil || !kind.Is(mr.GroupVersionKind().GroupKind()) {
			continue
		}
		if namespace := mr.GetNamespace(); namespace != "" && namespace != imp.Namespace {
			continue // The user who created it there chose its provider configuration.
		}
		id := mr.GetAnnotations()[ExternalNameAnnotation]
		// The name holds the import's UID: another import's resource of the same external name is not this one's.
		if mr.GetName() == ManagedName(imp, kind, mr.GetNamespace() != "", id) {
			found[id] = mr
		}
	}
	return found
}

// IsGone reports whether the provider found that the external resource does not exist. Its last observation stays in
// the status of the managed resource, so check this first.
func IsGone(mr *unstructured.Unstructured) bool {
	synced, _ := condition.Find(mr, "Synced")
	return synced.Status == metav1.ConditionFalse && strings.Contains(synced.Message, "external resource does not exist")
}

// poolNames is the union of what the user lists, what is already observed and what Node labels show: sorted, each
// checked against the cloud's grammar. An observed pool stays until its provider reports it as gone: one that is scaled
// to zero has no Nodes.
func (i Import) poolNames(g grammar, observed Observed, kind Kind, n *notes) []string {
	names := slices.Clone(i.NodePools)
	if i.DiscoverNodePools {
		for name, mr := range observed.resources(i, kind) {
			if !IsGone(mr) {
				names = append(names, name)
			}
		}
		for k, node := range observed.Nodes {
			if k == maxNodes {
				n.add(Lossy{Field: "nodes", Reason: "Only the first 50000 Nodes were read"})
				break
			}
			name, labelled := node.Labels[g.poolLabel]
			switch {
			case !labelled:
			case g.pool.MatchString(name):
				names = append(names, name)
			default:
				// One entry, for others not to be displaced.
				n.add(Lossy{Field: "nodes", Reason: "Node labels do not name node pools of this cloud"})
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > MaxNodePools {
		// What the user lists stays.
		rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(i.NodePools, name) })
		names = append(slices.Clone(i.NodePools), rest[:MaxNodePools-len(i.NodePools)]...)
		slices.Sort(names)
		names = slices.Compact(names)
		n.add(Lossy{Field: "nodePools", Reason: "There are more node pools than are read"})
	}
	return names
}
