// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Role is the part that an object plays in a reflection.
type Role string

// The roles, in order of creation. The Cluster is created when everything that it refers to exists with its annotations
// and its identity, so that no controller ever sees an object without them.
const (
	RoleIdentity     Role = "Identity"
	RoleInfraCluster Role = "InfraCluster"
	RoleControlPlane Role = "ControlPlane"
	RoleInfraPool    Role = "InfraPool"
	RoleCluster      Role = "Cluster"
	RoleMachinePool  Role = "MachinePool"
)

// Object is one reflected object.
type Object struct {
	Role Role
	// Pool is the cloud's name of the node pool that the object reflects. Empty for other objects.
	Pool string
	// Object without its status.
	Object *unstructured.Unstructured
	// Status is the object with only its status, for the status subresource. Nil means that none is to be written: another
	// controller owns it.
	Status *unstructured.Unstructured
}

var (
	clusterKind     = clusterv1.GroupVersion.WithKind("Cluster").GroupKind()
	machinePoolKind = clusterv1.GroupVersion.WithKind("MachinePool").GroupKind()
)

// reflector makes one cluster's reflection.
type reflector struct {
	imp     Import
	facts   Facts
	schemas Schemas
	kinds   reflectedKinds
	name    string
	objects []Object
	notes   notes
	// refused are the pools whose provider object cannot be made. They get no MachinePool: it would refer to nothing.
	refused map[string]bool
}

// part makes one object of the provider, which is ready from its creation.
func (r *reflector) part(role Role, pool string, kind schema.GroupKind, name string, fill func(b, status *builder)) error {
	b, err := r.reflected(kind, name)
	if err != nil {
		return err
	}
	status := b.withStatus()
	done := "status.initialization.provisioned"
	if role == RoleControlPlane {
		done = controlPlaneDone
	}
	status.setDone("status.ready", done)
	fill(b, status)
	r.add(role, pool, b, status)
	return nil
}

// reflected starts an object that a controller of Cluster API would reconcile: with both annotations from its creation.
func (r *reflector) reflected(kind schema.GroupKind, name string) (*builder, error) {
	b, err := r.newObject(kind, r.imp.Namespace, name)
	if err != nil {
		return nil, err
	}
	b.object.SetLabels(labels.Merge(b.object.GetLabels(), map[string]string{clusterv1.ClusterNameLabel: r.name}))
	b.object.SetAnnotations(map[string]string{clusterv1.ManagedByAnnotation: ManagedBy, clusterv1.PausedAnnotation: "true"})
	return b, nil
}

func (r *reflector) add(role Role, pool string, b, status *builder) {
	if reason := b.unfit(); reason != "" && pool != "" {
		// An API server would refuse the pool, and the whole reflection with it.
		b.notes.add(Lossy{Object: b.label(), Field: "spec", Observed: clean(pool), Reason: "The node pool is not reflected. " + reason})
		r.refused[pool] = true
		return
	}
	o := Object{Role: role, Pool: pool, Object: b.object}
	if status != nil && status.object.Object["status"] != nil {
		o.Status = status.object
	}
	r.objects = append(r.objects, o)
}

// zones are those of the cluster.
func (r *reflector) zones() []string {
	zones := map[string]bool{}
	for _, s := range r.facts.Subnets {
		if s.AvailabilityZone != "" {
			zones[s.AvailabilityZone] = true
		}
	}
	for _, p := range r.facts.NodePools {
		for _, z := range p.Zones {
			zones[z] = true
		}
	}
	return slices.Sorted(maps.Keys(zones))
}

// setFailureDomains says in which zones the cluster is: in none runs a control plane of the user's. The contract
// v1beta2 has a list, v1beta1 a map.
func (r *reflector) setFailureDomains(status *builder) {
	const path = "status.failureDomains"
	if items(at(status.schema, strings.Split(path, "."))) != nil {
		status.setEach(path, r.failureDomainList())
		return
	}
	out := map[string]any{}
	for _, z := range r.zones() {
		out[z] = map[string]any{"controlPlane": false}
	}
	status.set(path, out)
}

func (r *reflector) failureDomainList() []map[string]any {
	zones := r.zones()
	out := make([]map[string]any, len(zones))
	for i, z := range zones {
		out[i] = map[string]any{"name": z, "controlPlane": false}
	}
	return out
}

// statusVersion is the version in the form of Kubernetes' own.
func statusVersion(version string) string {
	if version == "" || strings.HasPrefix(version, "v") {
		return version
	}
	return "v" + version
}

// newObject starts a reflected object. It never has a finalizer: a provider takes one as the sign of its own work.
func (r *reflector) newObject(kind schema.GroupKind, namespace, name string) (*builder, error) {
	s, served := r.schemas[kind]
	if !served {
		return nil, &NotServedError{Kind: kind, Reason: "it has not been looked up"}
	}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(r.schemas.Kind(kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(maps.Clone(r.imp.Labels))
	return &builder{object: object, schema: s.JSONSchemaProps, notes: &r.notes}, nil
}
