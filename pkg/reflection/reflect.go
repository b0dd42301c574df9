// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Reflection is a cluster as Cluster API objects.
type Reflection struct {
	// Objects in the order of their creation.
	Objects []Object
	// Lossy is what the objects do not represent as it was observed.
	Lossy []Lossy
}

// Reflect creates the Cluster API objects of a cluster from its facts. Schemas are those of the installed kinds
// (ReflectedKinds); without one of them it returns a NotServedError. The same facts give the same objects, byte for
// byte.
func Reflect(imp Import, facts Facts, schemas Schemas) (Reflection, error) {
	if err := imp.Validate(); err != nil {
		return Reflection{}, err
	}
	c := findCloud(imp.Cloud)
	r := &reflector{imp: imp, facts: facts, schemas: schemas, kinds: c.reflected, name: imp.reflectedName(), refused: map[string]bool{}}
	r.notes.addAll(facts.Lossy)
	if err := r.provider(c); err != nil {
		return Reflection{}, err
	}
	if err := r.core(c); err != nil {
		return Reflection{}, err
	}
	return Reflection{Objects: r.objects, Lossy: r.notes.list()}, nil
}

// controlPlaneDone is the field of the contract v1beta2 that says that the control plane is there.
const controlPlaneDone = "status.initialization.controlPlaneInitialized"

// provider makes the objects of the cloud's provider. It sets what all providers have: the endpoint of the cluster, and
// the status that the contracts of Cluster API require.
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
		status.setDone("status.initialized", controlPlaneDone)
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

// setCIDRs sets CIDR blocks of the Cluster.
func (c cloud) setCIDRs(cluster *builder, path string, cidrs []string) {
	if c.oneCIDR && len(cidrs) > 1 {
		cluster.lossy(path, strings.Join(cidrs, ","), "The provider's webhook permits one block")
		cidrs = cidrs[:1]
	}
	cluster.set(path, cidrs)
}

// core makes the Cluster and its MachinePools.
func (r *reflector) core(c cloud) error {
	// Core copies no status of a paused Cluster, and none of a paused MachinePool.
	cluster, err := r.newObject(clusterKind, r.imp.Namespace, r.name)
	if err != nil {
		return err
	}
	cluster.object.SetLabels(labels.Merge(r.imp.ClusterLabels, r.imp.Labels))
	cluster.object.SetAnnotations(map[string]string{clusterv1.ManagedByAnnotation: ManagedBy})
	cluster.set("spec.infrastructureRef", reference(r.kinds.infraCluster, r.name))
	cluster.set("spec.controlPlaneRef", reference(r.kinds.controlPlane, r.name))
	cluster.setEndpoint("spec.controlPlaneEndpoint", r.facts.Endpoint)
	c.setCIDRs(cluster, "spec.clusterNetwork.services.cidrBlocks", r.facts.ServiceCIDRs)
	c.setCIDRs(cluster, "spec.clusterNetwork.pods.cidrBlocks", r.facts.PodCIDRs)
	var status *builder
	if r.imp.StrictPause {
		cluster.set("spec.paused", true)
		status = cluster.withStatus()
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

	status := b.withStatus()
	status.set("status.initialization", map[string]any{"infrastructureProvisioned": true, "bootstrapDataSecretCreated": true})
	status.set("status.phase", "Running")
	status.set("status.replicas", pool.Replicas)
	status.set("status.readyReplicas", pool.ReadyNodes)
	status.set("status.availableReplicas", pool.ReadyNodes)
	r.add(RoleMachinePool, pool.Name, b, status)
	return nil
}

func reference(kind schema.GroupKind, name string) map[string]any {
	return map[string]any{"apiGroup": kind.Group, "kind": kind.Kind, "name": name}
}
