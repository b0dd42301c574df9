// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
)

type change = func(*fleetv1alpha1.ClusterImport)

// TestImportedBefore: an import gives way to an older one of its cluster, and not to one that only presents its ID.
func TestImportedBefore(t *testing.T) {
	moved := func(i *fleetv1alpha1.ClusterImport) { i.Namespace = "tenant" }
	shares := func(config string) change {
		return func(i *fleetv1alpha1.ClusterImport) {
			i.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: config}
		}
	}
	of := func(cluster, region string) change {
		return func(i *fleetv1alpha1.ClusterImport) { i.Spec.EKS.ClusterName, i.Spec.EKS.Region = cluster, region }
	}
	created := func(second int64, uid types.UID) change {
		return func(i *fleetv1alpha1.ClusterImport) { i.CreationTimestamp.Time, i.UID = time.Unix(second, 0), uid }
	}
	observed := func(id string) change {
		return func(i *fleetv1alpha1.ClusterImport) {
			i.Status.Observed = &fleetv1alpha1.ObservedCluster{ID: id}
			i.Spec.EKS.ClusterName = "named-" + i.Name
		}
	}
	deleted := func(finalizer string) change {
		return func(i *fleetv1alpha1.ClusterImport) {
			i.DeletionTimestamp, i.Finalizers = &metav1.Time{Time: time.Unix(9, 0)}, []string{finalizer}
		}
	}
	stopped := func(reason string) change {
		return func(i *fleetv1alpha1.ClusterImport) {
			i.Status.Conditions = []metav1.Condition{{Type: fleetv1alpha1.ConditionPreflight, Reason: reason}}
		}
	}
	same, platform := observed(idOfAnImport), shares("platform")
	only := func(allowed string) func(string) bool {
		return func(namespace string) bool { return namespace == allowed }
	}
	for name, tc := range map[string]struct {
		both, other []change
		legacy      bool
		allows      func(string) bool
		want        bool
	}{
		"SameNames":                    {want: true},
		"Itself":                       {other: []change{created(1, "import-uid")}},
		"OtherName":                    {other: []change{of("Prod", "eu-central-1")}},
		"OtherRegion":                  {other: []change{of("prod", "eu-west-1")}},
		"OtherConfig":                  {other: []change{platform}},
		"SameID":                       {both: []change{same}, want: true},
		"SameIDWithAnotherConfig":      {both: []change{same}, other: []change{platform}, want: true},
		"UnknownIDs":                   {both: []change{observed("")}},
		"ConfigOfTheSameNameElsewhere": {other: []change{moved}},
		"SameIDElsewhere":              {both: []change{same}, other: []change{moved}},
		"SameIDWithTwoSharedConfigs":   {both: []change{same, platform}, other: []change{moved, shares("theirs")}},
		"ConfigsWithoutNamespaces":     {other: []change{moved}, legacy: true, want: true},
		"SharedConfig":                 {both: []change{platform}, other: []change{moved}, want: true},
		"SharedConfigNotAllowed":       {both: []change{platform}, other: []change{moved}, allows: only("customers")},
		"SharedConfigAllowed":          {both: []change{platform}, other: []change{moved}, allows: only("tenant"), want: true},
		"SharedConfigInTheNamespace":   {both: []change{platform}, allows: only("tenant"), want: true},
		"Younger":                      {other: []change{created(3, "a")}},
		"SameAge":                      {other: []change{created(2, "a")}, want: true},
		"SameAgeGreaterUID":            {other: []change{created(2, "z")}},
		"StillUnimports":               {other: []change{deleted(fleetv1alpha1.ImportFinalizer)}, want: true},
		"HeldByAForeignFinalizer":      {other: []change{deleted("example.org/anybody")}},
		"StoppedForAnotherReason":      {other: []change{stopped(fleetv1alpha1.ReasonKindsMissing)}, want: true},
		"MayNoLongerUseItsConfig":      {other: []change{stopped(fleetv1alpha1.ReasonProviderConfigNotAllowed)}},
	} {
		t.Run(name, func(t *testing.T) {
			imp, other := anImport(), anImport()
			imp.CreationTimestamp.Time, other.CreationTimestamp.Time = time.Unix(2, 0), time.Unix(1, 0)
			other.Name, other.UID = "other", "a"
			for _, change := range tc.both {
				change(imp)
				change(other)
			}
			for _, change := range tc.other {
				change(other)
			}
			all := []fleetv1alpha1.ClusterImport{*imp, *other}
			if _, got := ownership.ImportedBefore(imp, all, !tc.legacy, tc.allows); got != tc.want {
				t.Errorf("ImportedBefore(): want %v, got %v", tc.want, got)
			}
		})
	}
}
