// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
)

// TestImportedBefore: an import gives way to an older one of its cluster, and to nobody's who only presents its ID.
func TestImportedBefore(t *testing.T) {
	platform := fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
	moved := func(i *fleetv1alpha1.ClusterImport) { i.Namespace = "tenant" }
	shared := func(i *fleetv1alpha1.ClusterImport) { i.Spec.ProviderConfigRef = platform }
	observed := func(id string) func(*fleetv1alpha1.ClusterImport) {
		return func(i *fleetv1alpha1.ClusterImport) {
			i.Status.Observed = &fleetv1alpha1.ObservedCluster{ID: id}
			i.Spec.EKS.ClusterName = "named-" + i.Name
		}
	}
	deleted := func(finalizer string) func(*fleetv1alpha1.ClusterImport) {
		return func(i *fleetv1alpha1.ClusterImport) {
			i.DeletionTimestamp, i.Finalizers = &metav1.Time{Time: time.Unix(9, 0)}, []string{finalizer}
		}
	}
	type changes = []func(*fleetv1alpha1.ClusterImport)
	for name, tc := range map[string]struct {
		both, other changes
		legacy      bool
		allows      func(string) bool
		want        bool
	}{
		"SameNames":                     {want: true},
		"Itself":                        {other: changes{func(i *fleetv1alpha1.ClusterImport) { i.UID = "import-uid" }}},
		"OtherName":                     {other: changes{func(i *fleetv1alpha1.ClusterImport) { i.Spec.EKS.ClusterName = "Prod" }}},
		"OtherRegion":                   {other: changes{func(i *fleetv1alpha1.ClusterImport) { i.Spec.EKS.Region = "eu-west-1" }}},
		"OtherConfigInTheNamespace":     {other: changes{shared}},
		"SameID":                        {both: changes{observed(idOfAnImport)}, want: true},
		"SameIDWithAnotherConfig":       {both: changes{observed(idOfAnImport)}, other: changes{shared}, want: true},
		"UnknownIDs":                    {both: changes{observed("")}},
		"ConfigOfTheSameNameElsewhere":  {other: changes{moved}},
		"SameIDElsewhere":               {both: changes{observed(idOfAnImport)}, other: changes{moved}},
		"ConfigsWithoutNamespaces":      {other: changes{moved}, legacy: true, want: true},
		"SharedConfigElsewhere":         {both: changes{shared}, other: changes{moved}, want: true},
		"SharedConfigNotAllowed":        {both: changes{shared}, other: changes{moved}, allows: func(ns string) bool { return ns != "tenant" }},
		"SharedConfigAllowed":           {both: changes{shared}, other: changes{moved}, allows: func(ns string) bool { return ns == "tenant" }, want: true},
		"Younger":                       {other: changes{func(i *fleetv1alpha1.ClusterImport) { i.CreationTimestamp.Time = time.Unix(3, 0) }}},
		"SameAge":                       {other: changes{func(i *fleetv1alpha1.ClusterImport) { i.CreationTimestamp.Time = time.Unix(2, 0) }}, want: true},
		"SameAgeGreaterUID":             {other: changes{func(i *fleetv1alpha1.ClusterImport) { i.UID, i.CreationTimestamp.Time = "z", time.Unix(2, 0) }}},
		"UnimportsStill":                {other: changes{deleted(fleetv1alpha1.ImportFinalizer)}, want: true},
		"HeldByAForeignFinalizer":       {other: changes{deleted("example.org/anybody")}},
		"ConditionsThatSayNothingOfUse": {other: changes{withPreflight(fleetv1alpha1.ReasonKindsMissing)}, want: true},
		"MayNoLongerUseItsConfig":       {other: changes{withPreflight(fleetv1alpha1.ReasonProviderConfigNotAllowed)}},
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
			if _, got := ownership.ImportedBefore(imp, []fleetv1alpha1.ClusterImport{*imp, *other}, !tc.legacy, tc.allows); got != tc.want {
				t.Errorf("ImportedBefore(): want %v, got %v", tc.want, got)
			}
		})
	}
}

func withPreflight(reason string) func(*fleetv1alpha1.ClusterImport) {
	return func(i *fleetv1alpha1.ClusterImport) {
		i.Status.Conditions = []metav1.Condition{{Type: fleetv1alpha1.ConditionPreflight, Status: metav1.ConditionFalse, Reason: reason}}
	}
}
