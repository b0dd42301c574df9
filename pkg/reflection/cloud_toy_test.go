// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"fmt"
	"regexp"
	"testing"
)

// Toy is a cloud that is nowhere. What it has here is all that another cloud needs of this package.
const Toy Cloud = "Toy"

// ToyCluster is its one kind of managed resource.
var ToyCluster = Kind{"kubernetes", "toy", "Cluster"}

func toyCloud() cloud {
	name := regexp.MustCompile(`^[A-Za-z]{1,20}$`)
	return cloud{
		name: Toy,
		grammar: grammar{
			cluster: name, pool: name, place: name, placeName: "location of Toy", caseless: true,
			poolLabel: "toy.example.org/pool",
		},
		kinds:      []Kind{ToyCluster},
		placeField: "location", idField: "uuid", listsPools: true,
		reflected: reflectedKinds{
			infraCluster: infrastructure("ToyCluster"), controlPlane: infrastructure("ToyControlPlane"),
			infraPool: infrastructure("ToyMachinePool"),
		},
		want:         (*wanter).toy,
		read:         (*reader).toy,
		infraCluster: (*reflector).toyCluster, controlPlane: (*reflector).toyControlPlane, infraPool: (*reflector).toyPool,
	}
}

func (w *wanter) toy(Observed) {
	w.connect(w.add(ToyCluster, w.imp.ClusterName, w.imp.ClusterName, map[string]any{"location": w.imp.Place}))
}

func (r *reader) toy(b block) error {
	f := &r.facts
	if f.ID = b.text("uuid"); f.ID == "" {
		return fmt.Errorf("cannot import Toy cluster %q: the provider observed none", r.imp.ClusterName)
	}
	var err error
	f.Location, f.Version = r.imp.Place, b.text("version")
	f.Endpoint, err = parseEndpoint(b.text("endpoint"))
	for _, pool := range b.blocks("pools", MaxNodePools) {
		f.NodePools = append(f.NodePools, NodePool{Name: pool.text("name"), Replicas: pool.number("size")})
	}
	return err
}

// toyCluster names the credentials that the provider must not find.
func (r *reflector) toyCluster(b, _ *builder) {
	b.set("spec.credentialsRef", map[string]any{"name": r.imp.deniedName(), "namespace": r.imp.Namespace})
}

func (r *reflector) toyControlPlane(b, _ *builder) { b.set("spec.version", r.facts.Version) }

func (r *reflector) toyPool(pool NodePool, b *builder) { b.set("spec.size", pool.Replicas) }

// AddToy adds the cloud until a test ends that runs beside no other.
func AddToy(t *testing.T) {
	t.Helper()
	before := clouds
	clouds = append(append([]cloud(nil), before...), toyCloud())
	t.Cleanup(func() { clouds = before })
}
