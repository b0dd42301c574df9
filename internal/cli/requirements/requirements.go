// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requirements joins the claims of workload clusters with their objects in the hub. It does no I/O.
//
// It guarantees that every claim and every object that names a source is in one row, and that a row describes the hub's
// object that names the claim as its source.
package requirements

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// States of this package; all others are reasons of the condition AgentSynced.
const (
	// StateNotLookedAt: the claim has no condition AgentSynced.
	StateNotLookedAt = "NotLookedAt"

	// StateNotAsked: the cluster could not be queried, so only the hub's object is known.
	StateNotAsked = "NotAsked"

	// StateNoClaim: the hub has the object, but its cluster has no such claim.
	StateNoClaim = "NoClaim"

	// StateNoCluster: the hub has the object, but no enrolled cluster has its identifier.
	StateNoCluster = "NoCluster"
)

// Facts are what was fetched.
type Facts struct {
	Clusters []fleet.Cluster

	// Hub are the objects of claim kinds in the hub, Claims those in workload clusters.
	Hub    []*unstructured.Unstructured
	Claims []Claim

	// Queried are the names of the clusters whose claims are known.
	Queried map[string]bool
}

// A Claim is a claim in a workload cluster.
type Claim struct {
	Cluster string
	Object  *unstructured.Unstructured
}

// A Row is a claim, its object in the hub, or both.
type Row struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`

	// Hub is namespace and name of the object in the hub; empty if there is none.
	Hub string `json:"hub,omitempty"`

	// State is the reason of the condition AgentSynced, or one of the constants.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`

	// Ready is the status of the condition Ready: the claim's, or that of the hub's object if there is no claim.
	Ready string `json:"ready,omitempty"`

	// Holder is the holder of the name, for a claim that cannot have it.
	Holder string `json:"holder,omitempty"`
}

// source is the origin that an object of the hub names.
type source struct{ cluster, namespace, kind, name string }

// Rows joins everything, by cluster, namespace, kind and name.
func Rows(f Facts) []Row {
	bySource := map[source][]*unstructured.Unstructured{}
	for _, obj := range f.Hub {
		if s, ok := getSource(f.Clusters, obj); ok {
			bySource[s] = append(bySource[s], obj)
		}
	}
	var rows []Row
	for _, c := range f.Claims {
		key := source{c.Cluster, c.Object.GetNamespace(), c.Object.GetKind(), c.Object.GetName()}
		rows = append(rows, claimRow(f, key, c.Object, bySource[key]))
		delete(bySource, key)
	}
	for s, objects := range bySource {
		for _, obj := range objects {
			rows = append(rows, hubRow(f, s, obj))
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Hub, b.Hub))
	})
	return rows
}

// getSource names the claim of an object; false if it names none. An identifier without a cluster stands for itself.
func getSource(clusters []fleet.Cluster, obj *unstructured.Unstructured) (source, bool) {
	s, named := ownership.GetSource(obj)
	if !named {
		return source{}, false
	}
	cluster := s.Identifier
	if c := fleet.ByIdentifier(clusters, s.Identifier); c != nil {
		cluster = c.Name
	}
	return source{cluster, s.Namespace, obj.GetKind(), obj.GetName()}, true
}

func claimRow(f Facts, key source, claim *unstructured.Unstructured, counterparts []*unstructured.Unstructured) Row {
	row := Row{Cluster: key.cluster, Namespace: key.namespace, Kind: key.kind, Name: key.name, State: StateNotLookedAt}
	if c, ok := condition.Find(claim, fleetv1alpha1.ConditionAgentSynced); ok {
		row.State, row.Message = c.Reason, c.Message
	}
	row.Ready = ready(claim)
	record, recorded := ownership.GetRecord(claim)
	for _, obj := range counterparts {
		// A claim can have left objects in several namespaces; its own is the recorded one.
		if row.Hub == "" || recorded && obj.GetNamespace() == record.Namespace {
			row.Hub = obj.GetNamespace() + "/" + obj.GetName()
		}
	}
	if row.State == fleetv1alpha1.ReasonConflict {
		row.Holder = holder(f, claim)
	}
	return row
}

// holder returns the holder of a claim's name, by the name of the cluster if it can be seen.
func holder(f Facts, claim *unstructured.Unstructured) string {
	said := claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation]
	for _, obj := range f.Hub {
		if obj.GetKind() != claim.GetKind() || obj.GetName() != claim.GetName() || ownership.DescribeHolder(obj) != said {
			continue
		}
		s, named := ownership.GetSource(obj)
		if c := fleet.ByIdentifier(f.Clusters, s.Identifier); named && c != nil {
			return fmt.Sprintf("%s in %s", c.Name, s.Namespace)
		}
	}
	return said
}

func hubRow(f Facts, s source, obj *unstructured.Unstructured) Row {
	row := Row{
		Cluster: s.cluster, Namespace: s.namespace, Kind: s.kind, Name: s.name, Hub: obj.GetNamespace() + "/" + obj.GetName(),
		State: StateNoCluster, Ready: ready(obj), Message: "No enrolled cluster has this identifier.",
	}
	for i := range f.Clusters {
		if f.Clusters[i].Name != s.cluster {
			continue
		}
		row.State, row.Message = StateNotAsked, "The cluster could not be queried."
		if f.Queried[s.cluster] {
			row.State, row.Message = StateNoClaim, "The cluster has no such claim."
		}
	}
	return row
}

func ready(obj *unstructured.Unstructured) string {
	c, _ := condition.Find(obj, "Ready")
	return string(c.Status)
}
