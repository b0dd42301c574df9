// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// FuzzReflect feeds untrusted observations. Regardless of what is observed, the API server accepts the resulting
// objects, the managed resources stay harmless, and the results stay within bounds.
func FuzzReflect(f *testing.F) {
	for _, name := range layouts.Names() {
		fixture := loadFixture(f, name)
		for i, r := range fixture.Resources {
			raw, err := json.Marshal(r.AtProvider)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(name, i, raw, "general")
		}
	}
	f.Add("eks-standard", 0, []byte(`{"vpcConfig":[{"subnetIds":"subnet-1"}],"certificateAuthority":{"data":1},"arn":"arn:aws:eks:eu-central-1:1:cluster/shop-prod","endpoint":"https://a"}`), "A\x00b")
	f.Add("eks-standard", 1, []byte(`{"scalingConfig":{"desiredSize":1e30,"minSize":-1,"maxSize":2.5},"labels":{"a b":"c"},"taint":{"key":"","effect":"X"}}`), "../x")
	f.Add("aks-standard", 1, []byte(`{"vmSize":["a","b"],"zones":"1","nodeTaints":["::",":","a=b=c:NoSchedule"],"spotMaxPrice":{}}`), "UPPER")
	f.Add("gke-regional", 0, []byte(`{"id":"projects/p/locations/europe-west1/clusters/shop-prod","endpoint":"1.2.3.4","nodePool":{"name":"a","nodeCount":2147483647,"nodeLocations":["x","y"]}}`), "")
	f.Fuzz(func(t *testing.T, name string, index int, raw []byte, pool string) {
		fixture, err := layouts.Load(name)
		if err != nil || index < 0 || index >= len(fixture.Resources) {
			return // No such fixture: there is nothing to observe.
		}
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(append(append([]byte(`{"kind":"X","apiVersion":"v1","status":`), raw...), '}')) != nil {
			return // An API server returns JSON only.
		}
		fixture.Resources[index].AtProvider, _ = object.Object["status"].(map[string]any)
		label := map[string]string{"EKS": "eks.amazonaws.com/nodegroup", "AKS": "kubernetes.azure.com/agentpool", "GKE": "cloud.google.com/gke-nodepool"}[fixture.Cloud]
		fixture.Nodes = append(fixture.Nodes, layouts.Node{Labels: map[string]string{label: pool, "karpenter.sh/nodepool": pool}, KubeletVersion: pool})
		checkAnyObservation(t, fixture)
	})
}

func checkAnyObservation(t *testing.T, fixture layouts.Fixture) {
	t.Helper()
	hub := readHub(t)
	imp := newImport(fixture)
	observed, want := hub.observe(t, imp, served(imp.Cloud, false, true), fixture, true)
	for _, mr := range want.Resources {
		hub.validate(t, mr)
		checkObserveOnly(t, mr, imp)
		if id := mr.GetAnnotations()[reflection.ExternalNameAnnotation]; strings.ContainsAny(id, "/:. ") || len(id) > 100 {
			t.Errorf("%s looks up %q", mr.GetKind(), id)
		}
	}
	facts, err := reflection.Read(imp, hub.schemas, observed)
	if err != nil {
		return
	}
	reflected, err := reflection.Reflect(imp, facts, hub.schemas)
	if err != nil {
		t.Fatal(err)
	}
	if len(reflected.Lossy) > 201 || len(facts.NodePools) > reflection.MaxNodePools || len(facts.Subnets) > reflection.MaxSubnets {
		t.Errorf("%d lossy, %d pools, %d subnets: beyond the bounds", len(reflected.Lossy), len(facts.NodePools), len(facts.Subnets))
	}
	for _, o := range reflected.Objects {
		checkReflected(t, hub, o, false)
		if len(validation.IsDNS1123Label(o.Object.GetName())) > 0 {
			t.Errorf("%s is named %q", o.Object.GetKind(), o.Object.GetName())
		}
	}
	for _, l := range reflected.Lossy {
		if line := l.String(); strings.ContainsAny(line, "\n\r\x00\x1b") || len(line) > 2000 {
			t.Errorf("a message of %d bytes: %q", len(line), line[:min(len(line), 200)])
		}
	}
}
