// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Annotations on reflected objects.
const (
	// ManagedBy is the value of cluster.x-k8s.io/managed-by on everything that is reflected.
	ManagedBy = "crossplane"
	// ReplicasManagedBy is the value of cluster.x-k8s.io/replicas-managed-by on MachinePools.
	ReplicasManagedBy = "masthead-importer"
	// ObservedInstanceTypesAnnotation holds all instance types of a pool, separated by commas: Cluster API has room for
	// one.
	ObservedInstanceTypesAnnotation = "fleet.masthead.dev/observed-instance-types"
	// ObservedImageTypeAnnotation holds the image type of a pool where the installed kind does not know it.
	ObservedImageTypeAnnotation = "fleet.masthead.dev/observed-image-type"
)

// DeniedName is the last part of the name of the identity that providers must refuse.
const DeniedName = "denied"

const (
	groupInfrastructure = "infrastructure.cluster.x-k8s.io"
	groupControlPlane   = "controlplane.cluster.x-k8s.io"
)

// Role is the part that an object plays in a reflection.
type Role string

// The roles, in the order in which objects are to be created: the Cluster after everything that it refers to is there
// with its annotations and its identity, so that no controller ever sees one without them.
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
	// Status is the object with nothing but its status, for the status subresource. Nil means that none is to be written:
	// it is another controller's.
	Status *unstructured.Unstructured
}

// Reflection is a cluster as Cluster API objects.
type Reflection struct {
	// Objects in the order of their creation.
	Objects []Object
	// Lossy is what was observed and is not in the objects as it was observed.
	Lossy []Lossy
}

// ReflectedKinds are the kinds of Cluster API that a reflection of the cloud has, in the order of their creation.
func ReflectedKinds(name Cloud) []schema.GroupVersionKind {
	c, _ := cloudOf(name)
	k := c.reflected
	kinds := []schema.GroupVersionKind{k.identity, k.infraCluster, k.controlPlane, k.infraPool, clusterKind, machinePoolKind}
	return slices.DeleteFunc(kinds, schema.GroupVersionKind.Empty)
}

var (
	clusterKind     = clusterv1.GroupVersion.WithKind("Cluster")
	machinePoolKind = clusterv1.GroupVersion.WithKind("MachinePool")
)

// Reflect makes the Cluster API objects of a cluster out of its facts. Schemas are those of the installed kinds
// (ReflectedKinds); without one of them it returns a NotServedError. Objects of the same facts are the same, byte for
// byte.
func Reflect(imp Import, facts Facts, schemas Schemas) (Reflection, error) {
	if err := imp.Validate(); err != nil {
		return Reflection{}, err
	}
	c, _ := cloudOf(imp.Cloud)
	r := &reflector{imp: imp, facts: facts, schemas: schemas, kinds: c.reflected, name: imp.reflectedName(), refused: map[string]bool{}}
	r.notes.addAll(facts.Lossy)
	if err := r.provider(c); err != nil {
		return Reflection{}, err
	}
	if err := r.core(); err != nil {
		return Reflection{}, err
	}
	return Reflection{Objects: r.objects, Lossy: r.notes.list()}, nil
}

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

// provider makes the objects of the cloud's provider. What every provider's have is set here: the endpoint of the
// cluster, and the status that the contracts of Cluster API ask for.
func (r *reflector) provider(c cloud) error {
	if c.identity != nil {
		if err := c.identity(r); err != nil {
			return err
		}
	}
	if err := r.part(RoleInfraCluster, "", r.kinds.infraCluster, r.name, func(b, status *builder) {
		b.setEndpoint("spec.controlPlaneEndpoint", r.facts.Endpoint)
		if c.infraCluster != nil {
			c.infraCluster(r, b, status)
		}
	}); err != nil {
		return err
	}
	if err := r.part(RoleControlPlane, "", r.kinds.controlPlane, r.name, func(b, status *builder) {
		status.set("status.initialized", true)
		c.controlPlane(r, b, status)
	}); err != nil {
		return err
	}
	return r.pools(r.kinds.infraPool.Kind, func(pool NodePool, name string) error {
		return r.part(RoleInfraPool, pool.Name, r.kinds.infraPool, name, func(b, status *builder) {
			status.set("status.replicas", pool.Replicas)
			c.infraPool(r, pool, b)
		})
	})
}

// part makes one object of the provider, which is ready from its first moment.
func (r *reflector) part(role Role, pool string, gvk schema.GroupVersionKind, name string, fill func(b, status *builder)) error {
	b, err := r.reflected(gvk, name)
	if err != nil {
		return err
	}
	status := b.statusOf()
	status.set("status.ready", true)
	fill(b, status)
	r.add(role, pool, b, status)
	return nil
}

// reflected starts an object that a controller of Cluster API would reconcile: with both annotations from its first
// moment.
func (r *reflector) reflected(gvk schema.GroupVersionKind, name string) (*builder, error) {
	b, err := r.newObject(gvk, r.imp.Namespace, name)
	if err != nil {
		return nil, err
	}
	b.object.SetLabels(merged(b.object.GetLabels(), map[string]string{clusterv1.ClusterNameLabel: r.name}))
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

// deniedName is the name of the identity, or of the Secret, that is not to be had.
func (r *reflector) deniedName() string { return r.imp.deniedName() }

// pools gives each pool its name. Names are unique but for a hash that was searched for: then the first keeps it.
func (r *reflector) pools(kind string, reflect func(pool NodePool, name string) error) error {
	taken := map[string]bool{}
	for _, pool := range r.facts.NodePools {
		name := PoolName(r.name, pool.Name)
		if r.refused[pool.Name] {
			continue
		}
		if taken[name] {
			r.notes.add(Lossy{Object: kind + "/" + name, Field: "metadata.name", Observed: clean(pool.Name), Reason: "Another node pool has this name"})
			continue
		}
		taken[name] = true
		if err := reflect(pool, name); err != nil {
			return err
		}
	}
	return nil
}

// setEndpoint sets the endpoint in a field of host and port.
func (b *builder) setEndpoint(path string, e Endpoint) {
	b.set(path, map[string]any{"host": e.Host, "port": int64(e.Port)})
}

// core makes the Cluster and its MachinePools.
func (r *reflector) core() error {
	// Core copies no status of a paused Cluster, and none of a paused MachinePool.
	cluster, err := r.newObject(clusterKind, r.imp.Namespace, r.name)
	if err != nil {
		return err
	}
	cluster.object.SetLabels(merged(r.imp.ClusterLabels, r.imp.Labels))
	cluster.object.SetAnnotations(map[string]string{clusterv1.ManagedByAnnotation: ManagedBy})
	cluster.set("spec.infrastructureRef", reference(r.kinds.infraCluster, r.name))
	cluster.set("spec.controlPlaneRef", reference(r.kinds.controlPlane, r.name))
	cluster.setEndpoint("spec.controlPlaneEndpoint", r.facts.Endpoint)
	cluster.set("spec.clusterNetwork.services.cidrBlocks", r.facts.ServiceCIDRs)
	cluster.set("spec.clusterNetwork.pods.cidrBlocks", r.facts.PodCIDRs)
	var status *builder
	if r.imp.StrictPause {
		cluster.set("spec.paused", true)
		status = cluster.statusOf()
		status.set("status.initialization", map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true})
		status.set("status.phase", "Provisioned")
		status.setEach("status.failureDomains", r.failureDomainList())
	}
	r.add(RoleCluster, "", cluster, status)
	return r.pools(machinePoolKind.Kind, r.machinePool)
}

func (r *reflector) machinePool(pool NodePool, name string) error {
	b, err := r.reflected(machinePoolKind, name)
	if err != nil {
		return err
	}
	b.annotate(clusterv1.ReplicasManagedByAnnotation, ReplicasManagedBy)
	b.set("spec.clusterName", r.name)
	b.set("spec.replicas", pool.Replicas)
	b.set("spec.failureDomains", pool.Zones)
	template := map[string]any{
		"clusterName":       r.name,
		"bootstrap":         map[string]any{"dataSecretName": ""},
		"infrastructureRef": reference(r.kinds.infraPool, name),
	}
	if pool.KubeletVersion != "" {
		template["version"] = pool.KubeletVersion
	} else {
		b.lossy("spec.template.spec.version", "", "The version of the kubelet is not known")
	}
	b.set("spec.template.spec", template)

	status := b.statusOf()
	status.set("status.initialization", map[string]any{"infrastructureProvisioned": true, "bootstrapDataSecretCreated": true})
	status.set("status.phase", "Running")
	status.set("status.replicas", pool.Replicas)
	status.set("status.readyReplicas", pool.ReadyNodes)
	status.set("status.availableReplicas", pool.ReadyNodes)
	r.add(RoleMachinePool, pool.Name, b, status)
	return nil
}

func reference(gvk schema.GroupVersionKind, name string) map[string]any {
	return map[string]any{"apiGroup": gvk.Group, "kind": gvk.Kind, "name": name}
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

// failureDomains are the zones as the v1beta1 contract has them: in none runs a control plane of the user's.
func (r *reflector) failureDomains() map[string]any {
	out := map[string]any{}
	for _, z := range r.zones() {
		out[z] = map[string]any{"controlPlane": false}
	}
	return out
}

func (r *reflector) failureDomainList() []map[string]any {
	zones := r.zones()
	out := make([]map[string]any, len(zones))
	for i, z := range zones {
		out[i] = map[string]any{"name": z, "controlPlane": false}
	}
	return out
}
