// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Labels of Nodes that belong to no pool.
const (
	computeTypeLabel   = "eks.amazonaws.com/compute-type"
	karpenterPoolLabel = "karpenter.sh/nodepool"
	virtualNodeLabel   = "type"
)

// Read reads the facts out of what is observed. It returns ErrNotObserved until the provider has observed the cluster
// and the cluster has an endpoint, and another error when what it observed is not the cluster that the import names.
// The schemas are those of the managed resources: what they lack is lossy.
func Read(imp Import, served Schemas, observed Observed) (Facts, error) {
	if err := imp.Validate(); err != nil {
		return Facts{}, err
	}
	r := &reader{imp: imp, served: served, observed: observed, facts: Facts{Cloud: imp.Cloud}}
	c := findCloud(imp.Cloud)
	cluster := c.kinds[0]
	b, ok := r.atProvider(r.observed.resources(imp, cluster)[imp.ClusterName], cluster.Kind)
	if !ok {
		return Facts{}, ErrNotObserved
	}
	if err := c.read(r, b); err != nil {
		return Facts{}, err
	}
	r.countNodes(c.poolLabel)
	slices.SortFunc(r.facts.NodePools, func(a, b NodePool) int { return strings.Compare(a.Name, b.Name) })
	r.judgeCompleteness(c.listsPools)
	r.facts.Lossy = r.notes.list()
	return r.facts, nil
}

func (r *reader) judgeCompleteness(allListed bool) {
	switch {
	case len(r.facts.PendingNodePools) > 0:
		r.facts.NodePoolsReason = "Node pools are not observed yet: " + listed(r.facts.PendingNodePools)
	case len(r.facts.GoneNodePools) > 0:
		r.facts.NodePoolsReason = "Node pools do not exist: " + listed(r.facts.GoneNodePools)
	case !allListed && r.imp.DiscoverNodePools && !r.observed.NodesKnown:
		r.facts.NodePoolsReason = "The Nodes of the cluster are not known, and the cloud's objects do not list its node pools"
	default:
		r.facts.NodePoolsComplete = true
	}
}

// listed is a short list for a message.
func listed(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// countNodes counts the ready Nodes of each pool, and the capacity that belongs to none.
func (r *reader) countNodes(label string) {
	if !r.observed.NodesKnown {
		return
	}
	ready, versions, capacity := map[string]int32{}, map[string]string{}, map[Capacity]int32{}
	for _, node := range r.observed.Nodes[:min(len(r.observed.Nodes), maxNodes)] {
		if pool, ok := node.Labels[label]; ok && !r.autopilot() {
			if v := kubeletVersion(node.KubeletVersion); v != "" && (versions[pool] == "" || v < versions[pool]) {
				versions[pool] = v
			}
			if node.Ready {
				ready[pool]++
			}
			continue
		}
		of := r.capacityFor(node)
		if _, known := capacity[of]; !known && len(capacity) >= maxCapacity {
			of = Capacity{Type: CapacitySelfManaged}
		}
		capacity[of]++
	}
	for i := range r.facts.NodePools {
		pool := &r.facts.NodePools[i]
		n := ready[pool.Name]
		pool.ReadyNodes = &n
		if pool.KubeletVersion == "" {
			pool.KubeletVersion = versions[pool.Name]
		}
	}
	r.addCapacity(capacity)
}

// capacityFor is the capacity that a Node of no pool is part of.
func (r *reader) capacityFor(node Node) Capacity {
	if r.autopilot() {
		return Capacity{Type: CapacityAutopilot}
	}
	return nodeCapacity(node)
}

// addCapacity adds what the Nodes show to what the cloud says.
func (r *reader) addCapacity(counted map[Capacity]int32) {
	for _, of := range slices.SortedFunc(maps.Keys(counted), compareCapacity) {
		at := slices.IndexFunc(r.facts.Capacity, func(c Capacity) bool { return c.Type == of.Type && c.Name == of.Name })
		if at < 0 {
			r.facts.Capacity = append(r.facts.Capacity, of)
			at = len(r.facts.Capacity) - 1
		}
		r.facts.Capacity[at].Nodes = counted[of]
	}
	slices.SortFunc(r.facts.Capacity, compareCapacity)
}

func compareCapacity(a, b Capacity) int {
	return strings.Compare(a.Type+"\x00"+a.Name, b.Type+"\x00"+b.Name)
}

// nodeCapacity says to what a Node without a pool belongs. The names in its labels are foreign text.
func nodeCapacity(node Node) Capacity {
	karpenter, hasKarpenter := node.Labels[karpenterPoolLabel]
	switch {
	case node.Labels[computeTypeLabel] == "fargate":
		return Capacity{Type: CapacityFargate}
	case node.Labels[computeTypeLabel] == "auto":
		return Capacity{Type: CapacityAutoMode, Name: clean(karpenter)}
	case node.Labels[computeTypeLabel] == "hybrid":
		return Capacity{Type: CapacityHybrid}
	case hasKarpenter:
		return Capacity{Type: CapacityKarpenter, Name: clean(karpenter)}
	case node.Labels[virtualNodeLabel] == "virtual-kubelet":
		return Capacity{Type: CapacityVirtualNode}
	default:
		return Capacity{Type: CapacitySelfManaged}
	}
}

// NodeLabels are the labels of Nodes that are read: those that name a pool, in each cloud, and those that say what a
// Node without a pool is.
func NodeLabels() []string {
	labels := []string{computeTypeLabel, karpenterPoolLabel, virtualNodeLabel}
	for _, c := range clouds {
		labels = append(labels, c.poolLabel)
	}
	return labels
}
