// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/reflection"
)

// TestChosenVersion: which version of a kind imports use, or why none.
func TestChosenVersion(t *testing.T) {
	t.Parallel()
	const v1beta1, v1beta2 = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"
	azure := schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "AzureManagedControlPlane"}
	identity := schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSClusterStaticIdentity"}
	cluster := schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}
	managed := reflection.GKECluster.Legacy()
	for name, tc := range map[string]struct {
		kind schema.GroupKind
		// labels as "key=value".
		labels []string
		// versions of the CRD; of those with a "!" the CRD serves none, and of those with a "?" it has no schema.
		versions []string
		want     string
		refusal  string
	}{
		"Label":                     {azure, []string{v1beta1 + "=v1beta1"}, []string{"v1beta1"}, "v1beta1", ""},
		"NewestContract":            {azure, []string{v1beta1 + "=v1beta1", v1beta2 + "=v1beta2"}, []string{"v1beta1", "v1beta2"}, "v1beta2", ""},
		"NotTheNewestVersion":       {azure, []string{v1beta2 + "=v1beta1"}, []string{"v1beta1", "v1beta2"}, "v1beta1", ""},
		"SeveralVersions":           {azure, []string{v1beta1 + "=v1alpha4_v1beta10_v1beta9"}, []string{"v1beta9", "v1beta10", "v1"}, "v1beta10", ""},
		"Stable":                    {azure, []string{v1beta2 + "=v1_v1beta9"}, []string{"v1beta9", "v1"}, "v1", ""},
		"UnknownContractToo":        {azure, []string{"cluster.x-k8s.io/v1=v1", v1beta2 + "=v1beta2"}, []string{"v1beta2", "v1"}, "v1beta2", ""},
		"OtherLabels":               {azure, []string{"cluster.x-k8s.io/provider=infrastructure-azure"}, []string{"v1beta1", "v1"}, "v1", ""},
		"Identity":                  {identity, []string{v1beta1 + "=v1beta1_v1beta2"}, []string{"v1beta1", "v1beta2"}, "v1beta2", ""},
		"NoLabel":                   {azure, nil, []string{"v1beta2", "v1beta1", "v1"}, "v1", ""},
		"NoLabelAndNotServed":       {azure, nil, []string{"!v1beta1", "v1alpha1", "v1beta3", "v1beta2"}, "v1beta3", ""},
		"Managed":                   {managed, nil, []string{"v1beta1", "v1beta2"}, "v1beta1", ""},
		"ManagedOfGoogle3":          {managed, nil, []string{"v1beta2"}, "v1beta2", ""},
		"Core":                      {cluster, []string{"cluster.x-k8s.io/v1=v1"}, []string{"v1beta2", "v1"}, "v1beta2", ""},
		"CoreTooOld":                {cluster, []string{v1beta1 + "=v1beta1"}, []string{"v1beta1"}, "", "Masthead writes version v1beta2"},
		"UnknownContract":           {azure, []string{"cluster.x-k8s.io/v1=v1beta1"}, []string{"v1beta1"}, "", "no version for the contracts v1beta2 and v1beta1"},
		"OldContract":               {azure, []string{"cluster.x-k8s.io/v1alpha4=v1alpha4"}, []string{"v1alpha4", "v1beta1"}, "", "no version for the contracts"},
		"Empty":                     {azure, []string{v1beta2 + "="}, []string{"v1beta1"}, "", "no version for the contracts"},
		"EmptyBesideOlder":          {azure, []string{v1beta2 + "=", v1beta1 + "=v1beta1"}, []string{"v1beta1"}, "v1beta1", ""},
		"Separators":                {azure, []string{v1beta2 + "=__"}, []string{"v1beta1"}, "", `names "__"`},
		"UnknownVersion":            {azure, []string{v1beta2 + "=latest"}, []string{"v1beta1"}, "", `names "latest"`},
		"NotServed":                 {azure, []string{v1beta2 + "=v1beta2"}, []string{"v1beta1", "!v1beta2"}, "", `names "v1beta2"`},
		"NewestNotServed":           {azure, []string{v1beta2 + "=v1beta1_v1beta2"}, []string{"v1beta1", "!v1beta2"}, "", `names "v1beta1_v1beta2"`},
		"NewestContractNotServed":   {azure, []string{v1beta2 + "=v1beta2", v1beta1 + "=v1beta1"}, []string{"v1beta1"}, "", `names "v1beta2"`},
		"NoSchema":                  {azure, []string{v1beta2 + "=v1beta2"}, []string{"v1beta1", "?v1beta2"}, "", `names "v1beta2"`},
		"NothingServed":             {azure, nil, []string{"!v1beta1"}, "", "its CRD serves no version"},
		"NothingServedOfCore":       {cluster, nil, nil, "", "Masthead writes version v1beta2"},
		"NothingServedWithALabel":   {azure, []string{v1beta1 + "=v1beta1"}, nil, "", `names "v1beta1"`},
		"NothingServedOfManaged":    {managed, nil, []string{"!v1beta1"}, "", "its CRD serves no version"},
		"LabelOfAnotherGroup":       {azure, []string{"infrastructure.cluster.x-k8s.io/v1beta2=v1"}, []string{"v1beta1", "v1"}, "v1", ""},
		"VersionsThatAreNone":       {azure, nil, []string{"zeta", "alpha"}, "alpha", ""},
		"VersionsThatAreNoneToo":    {azure, []string{v1beta1 + "=zeta_alpha"}, []string{"zeta", "alpha"}, "alpha", ""},
		"NoneBesideOne":             {azure, nil, []string{"zeta", "v1alpha1"}, "v1alpha1", ""},
		"NothingServedOfNoContract": {azure, []string{"cluster.x-k8s.io/v1=v1"}, nil, "", "no version for the contracts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Spec.Group, crd.Spec.Names.Kind, crd.Labels = tc.kind.Group, tc.kind.Kind, map[string]string{}
			for _, label := range tc.labels {
				key, value, _ := strings.Cut(label, "=")
				crd.Labels[key] = value
			}
			for _, v := range tc.versions {
				version := apiextensionsv1.CustomResourceDefinitionVersion{Name: strings.TrimLeft(v, "!?"), Served: v[0] != '!'}
				if v[0] != '?' {
					version.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}
				}
				crd.Spec.Versions = append(crd.Spec.Versions, version)
			}
			got, err := reflection.NewSchema(crd)
			if got.Version != tc.want || (err == nil) != (tc.refusal == "") {
				t.Fatalf("want version %q, got %q, %v", tc.want, got.Version, err)
			}
			if err == nil {
				return
			}
			if _, ok := errors.AsType[*reflection.NotServedError](err); !ok || !strings.Contains(err.Error(), tc.refusal) || !strings.Contains(err.Error(), tc.kind.String()) {
				t.Errorf("want a NotServedError with %q, got %v", tc.refusal, err)
			}
		})
	}
}
