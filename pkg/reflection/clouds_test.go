// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// TestPoliciesCoverEveryCloud: a kind that no policy covers could be made to act on the cluster. A cloud is not added
// before its kinds are in config/policies.
//
//nolint:paralleltest // It changes the table of clouds.
func TestPoliciesCoverEveryCloud(t *testing.T) {
	reflection.AddToy(t)
	policies, err := takeover.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, cloud := range reflection.Clouds() {
		var want []string
		if cloud == reflection.Toy {
			want = []string{
				"identifiers of Cluster.kubernetes.toy.upbound.io", "managers of Cluster.kubernetes.toy.m.upbound.io",
				"Cluster.kubernetes.toy.upbound.io", "Cluster.kubernetes.toy.m.upbound.io",
				"ToyCluster.infrastructure.cluster.x-k8s.io", "ToyControlPlane.infrastructure.cluster.x-k8s.io",
				"ToyMachinePool.infrastructure.cluster.x-k8s.io",
			}
		}
		if diff := cmp.Diff(want, uncovered(policies, cloud)); diff != "" {
			t.Errorf("what no policy covers of %s: -want, +got:\n%s", cloud, diff)
		}
	}
	reflection.AddToyPolicies(t)
	if policies, err = takeover.Policies(); err != nil {
		t.Fatal(err)
	}
	if left := uncovered(policies, reflection.Toy); len(left) > 0 {
		t.Errorf("with its lines in the policies, want all covered of the cloud, got %q", left)
	}
}

// uncovered lists what the policies lack of a cloud.
func uncovered(policies []takeover.Policy, cloud reflection.Cloud) []string {
	var missing []string
	for i, kind := range reflection.Kinds(cloud) {
		if !isNamed(policies, "identifiers", kind.Legacy()) {
			missing = append(missing, "identifiers of "+kind.Legacy().String())
		}
		if i == 0 && !isNamed(policies, "names", kind.Namespaced()) {
			missing = append(missing, "managers of "+kind.Namespaced().String())
		}
		for _, gk := range []schema.GroupKind{kind.Legacy(), kind.Namespaced()} {
			if !isMatched(policies, gk) {
				missing = append(missing, gk.String())
			}
		}
	}
	for _, kind := range reflection.ProviderKinds(cloud) {
		if !isMatched(policies, kind) {
			missing = append(missing, kind.String())
		}
	}
	return missing
}

// isNamed reports whether a variable of a policy lists a kind.
func isNamed(policies []takeover.Policy, variable string, gk schema.GroupKind) bool {
	return slices.ContainsFunc(policies, func(p takeover.Policy) bool {
		for _, v := range p.Policy.Spec.Variables {
			if v.Name == variable && strings.Contains(v.Expression, "'"+gk.Group+"/"+gk.Kind+"':") {
				return true
			}
		}
		return false
	})
}

// isMatched reports whether a policy applies to objects of a kind that have the label of an import.
func isMatched(policies []takeover.Policy, gk schema.GroupKind) bool {
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	return slices.ContainsFunc(policies, func(p takeover.Policy) bool {
		constraints := p.Policy.Spec.MatchConstraints
		exists := func(r metav1.LabelSelectorRequirement) bool { return r.Operator == metav1.LabelSelectorOpExists }
		if !slices.ContainsFunc(constraints.ObjectSelector.MatchExpressions, exists) {
			return false
		}
		for _, rule := range constraints.ResourceRules {
			covers := slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, plural.Resource)
			if covers && slices.Contains(rule.APIGroups, gk.Group) {
				return true
			}
		}
		return false
	})
}
