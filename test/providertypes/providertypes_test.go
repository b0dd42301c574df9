// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package providertypes_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	strictjson "sigs.k8s.io/json"

	clusterec2 "github.com/upbound/provider-aws/v2/apis/cluster/ec2/v1beta1"
	clustereks "github.com/upbound/provider-aws/v2/apis/cluster/eks/v1beta1"
	namespacedec2 "github.com/upbound/provider-aws/v2/apis/namespaced/ec2/v1beta1"
	namespacedeks "github.com/upbound/provider-aws/v2/apis/namespaced/eks/v1beta1"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// typed are functions that return a new struct of the provider for each kind.
var typed = map[schema.GroupKind]func() any{
	reflection.EKSCluster.Legacy():        func() any { return &clustereks.Cluster{} },
	reflection.EKSClusterAuth.Legacy():    func() any { return &clustereks.ClusterAuth{} },
	reflection.EKSNodeGroup.Legacy():      func() any { return &clustereks.NodeGroup{} },
	reflection.EKSFargateProfile.Legacy(): func() any { return &clustereks.FargateProfile{} },
	reflection.EC2VPC.Legacy():            func() any { return &clusterec2.VPC{} },
	reflection.EC2Subnet.Legacy():         func() any { return &clusterec2.Subnet{} },
	reflection.EC2RouteTable.Legacy():     func() any { return &clusterec2.RouteTable{} },

	reflection.EKSCluster.Namespaced():        func() any { return &namespacedeks.Cluster{} },
	reflection.EKSClusterAuth.Namespaced():    func() any { return &namespacedeks.ClusterAuth{} },
	reflection.EKSNodeGroup.Namespaced():      func() any { return &namespacedeks.NodeGroup{} },
	reflection.EKSFargateProfile.Namespaced(): func() any { return &namespacedeks.FargateProfile{} },
	reflection.EC2VPC.Namespaced():            func() any { return &namespacedec2.VPC{} },
	reflection.EC2Subnet.Namespaced():         func() any { return &namespacedec2.Subnet{} },
	reflection.EC2RouteTable.Namespaced():     func() any { return &namespacedec2.RouteTable{} },
}

func TestManagedResourcesDecodeStrictly(t *testing.T) {
	kinds := append(providercrds.ManagedResources(), providercrds.ModernManagedResources()...)
	definitions, err := providercrds.Load(t.Context(), kinds...)
	if err != nil {
		t.Fatal(err)
	}
	crds := map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range definitions {
		crds[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = crd
	}
	decoded := map[schema.GroupKind]bool{}
	for _, name := range layouts.Names() {
		f, err := layouts.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Cloud != "EKS" {
			continue
		}
		for _, namespaced := range []bool{false, true} {
			for _, mr := range observe(t, f, crds, namespaced) {
				decode(t, mr)
				decoded[mr.GroupVersionKind().GroupKind()] = true
			}
		}
	}
	for gk := range typed {
		if !decoded[gk] {
			t.Errorf("no %s was decoded: this test proves nothing about it", gk)
		}
	}
}

// observe returns all managed resources that the import of a fixture wants, with what the provider observes.
func observe(t *testing.T, f layouts.Fixture, crds map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition, namespaced bool) []*unstructured.Unstructured {
	t.Helper()
	imp := reflection.Import{
		Namespace: "team-a", Name: "prod", UID: "1", Cloud: reflection.EKS, ClusterName: f.ClusterName, Place: f.Place,
		DiscoverNodePools: true, ConnectionSecretName: "prod-connection", Paused: true,
	}
	for _, r := range f.Resources {
		switch r.Kind {
		case "NodeGroup":
			imp.NodePools = append(imp.NodePools, r.ExternalName)
		case "FargateProfile":
			imp.FargateProfiles = append(imp.FargateProfiles, r.ExternalName)
		case "RouteTable":
			imp.Subnets = append(imp.Subnets, reflection.SubnetHint{ID: "subnet-0123456789abcdef0", RouteTableID: r.ExternalName})
		}
	}
	served := reflection.Schemas{}
	for gk := range crds {
		if strings.Contains(gk.Group, ".aws.m.") == namespaced {
			served[gk] = reflection.Schema{Version: "v1beta1"}
		}
	}
	var observed reflection.Observed
	for {
		want, err := reflection.Wanted(imp, served, observed)
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Resources) == len(observed.Resources) {
			return observed.Resources
		}
		observed.Resources = nil
		for _, mr := range want.Resources {
			gvk := mr.GroupVersionKind()
			at := slices.IndexFunc(f.Resources, func(r layouts.Resource) bool {
				return r.Kind == gvk.Kind && r.ExternalName == mr.GetAnnotations()[reflection.ExternalNameAnnotation]
			})
			if at >= 0 {
				mr.Object["status"] = map[string]any{"atProvider": layouts.Shape(f.Resources[at].AtProvider, crds[gvk.GroupKind()], gvk.Version)}
			}
			observed.Resources = append(observed.Resources, mr)
		}
	}
}

func decode(t *testing.T, mr *unstructured.Unstructured) {
	t.Helper()
	gk := mr.GroupVersionKind().GroupKind()
	newTyped, found := typed[gk]
	if !found {
		t.Errorf("no typed struct for %s", gk)
		return
	}
	raw, err := json.Marshal(mr.Object)
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := strictjson.UnmarshalStrict(raw, newTyped())
	if err != nil || len(unknown) > 0 {
		t.Errorf("%s %q does not decode strictly: %v %v", gk, mr.GetName(), unknown, err)
	}
}
