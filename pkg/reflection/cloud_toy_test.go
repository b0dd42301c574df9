// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/config/policies"
)

// Toy is a cloud that is nowhere. What it has here is all that another cloud needs of this package, and of the
// policies.
const Toy Cloud = "Toy"

// ToyCluster is its one kind of managed resource.
var ToyCluster = Kind{"kubernetes", "toy", "Cluster"}

func toyCloud() cloud {
	name := regexp.MustCompile(`^[A-Za-z0-9-]{1,20}$`)
	return cloud{
		name: Toy, find: findToy,
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
		plain:        infrastructure("ToyMachinePool"),
		want:         (*wanter).toy,
		read:         (*reader).toy,
		infraCluster: (*reflector).toyCluster, controlPlane: (*reflector).toyControlPlane, infraPool: (*reflector).toyPool,
	}
}

// findToy takes specs of GKE in a location of Toy: a test cannot give ClusterImport a field.
func findToy(i *Import, s *fleetv1alpha1.ClusterImportSpec) bool {
	if s.GKE == nil || !strings.HasPrefix(s.GKE.Location, "toy-") {
		return false
	}
	i.Place, i.ClusterName = s.GKE.Location, s.GKE.ClusterName
	return true
}

func (w *wanter) toy(Observed) {
	w.connect(w.add(ToyCluster, w.imp.ClusterName, w.imp.ClusterName, map[string]any{"location": w.imp.Place}))
}

func (r *reader) toy(b block) error {
	f := &r.facts
	var err error
	f.ID, f.Location, f.Version, f.CertificateAuthority = b.text("uuid"), r.imp.Place, b.text("version"), b.certificate(b, "authority")
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
	clouds = append([]cloud{toyCloud()}, before...)
	t.Cleanup(func() { clouds = before })
}

// toyLines are the lines of the cloud in config/policies, each before one of GKE's. In managers, its specs are those of
// GKE.
var toyLines = map[string]*strings.Replacer{
	"managed-resources.yaml": before(
		"      - container.gcp.upbound.io\n", "      - kubernetes.toy.upbound.io\n      - kubernetes.toy.m.upbound.io\n",
		"        'container.gcp.upbound.io/Cluster':", "        'kubernetes.toy.upbound.io/Cluster': ['location'],\n",
	),
	"reflections.yaml": before(
		"      - gcpmanagedclusters\n", "      - toyclusters\n      - toycontrolplanes\n      - toymachinepools\n",
		"        'GCPManagedCluster':", "        'ToyCluster': 'credentialsRef',\n",
	),
	"managers.yaml": before(
		"    - apiGroups: [container.gcp.m.upbound.io]\n", "    - apiGroups: [kubernetes.toy.m.upbound.io]\n"+
			"      apiVersions: [\"*\"]\n      operations: [CREATE, UPDATE]\n      resources: [clusters]\n      scope: Namespaced\n",
		"        'container.gcp.m.upbound.io/Cluster':", "        'kubernetes.toy.m.upbound.io/Cluster': [\n"+
			"          'gke', string(variables.forProvider.?location.orValue('')).lowerAscii(), string(variables.externalName).lowerAscii()\n        ],\n",
	),
	"cluster-api.yaml": before(), "identities.yaml": before(), "members.yaml": before(),
}

// before inserts the second of each pair before the first.
func before(pairs ...string) *strings.Replacer {
	for i := 1; i < len(pairs); i += 2 {
		pairs[i] += pairs[i-1]
	}
	return strings.NewReplacer(pairs...)
}

// AddToyPolicies adds the lines of the cloud to the policies until the test ends.
func AddToyPolicies(t *testing.T) {
	t.Helper()
	files, with := policies.Files, fstest.MapFS{}
	for name, lines := range toyLines {
		content, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		with[name] = &fstest.MapFile{Data: []byte(lines.Replace(string(content)))}
	}
	policies.Files = with
	t.Cleanup(func() { policies.Files = files })
}
