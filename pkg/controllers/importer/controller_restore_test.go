// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// restored is a hub into which a backup of another one was restored, as Velero and clusterctl move do it: no object has
// a status or an owner, and every one but the ClusterImport has another UID.
func (h *hubOfOneImport) restored(uid types.UID, change func(*unstructured.Unstructured)) *hubOfOneImport {
	h.t.Helper()
	imp := h.get()
	imp.UID, imp.ResourceVersion, imp.Status = uid, "", fleetv1alpha1.ClusterImportStatus{}
	var objects []client.Object
	for _, gvk := range append(kindsOfEKS(), corev1.SchemeGroupVersion.WithKind("Secret")) {
		for _, o := range h.list(gvk) {
			o.SetUID("restored-" + o.GetUID())
			o.SetResourceVersion("")
			o.SetOwnerReferences(nil)
			unstructured.RemoveNestedField(o.Object, "status")
			if change != nil {
				change(&o)
			}
			objects = append(objects, &o)
		}
	}
	return newHub(h.t, imp, objects...)
}

// losePolicies makes the cluster's managed resource one that was restored where its CRD gave it the default policies.
func losePolicies(o *unstructured.Unstructured) {
	if reflection.EKSCluster.Is(o.GroupVersionKind().GroupKind()) {
		_ = unstructured.SetNestedStringSlice(o.Object, []string{"*"}, "spec", "managementPolicies")
	}
}

// loseAnnotations removes, from what is reflected, what prevents providers from acting on it.
func loseAnnotations(o *unstructured.Unstructured) {
	if strings.HasSuffix(o.GroupVersionKind().Group, clusterv1.GroupVersion.Group) {
		o.SetAnnotations(nil)
	}
}

// kindsIn are the kinds of some objects, without their names: managed resources of another import have other names.
func kindsIn(made []string) []string {
	kinds := make([]string, 0, len(made))
	for _, o := range made {
		kind, _, _ := strings.Cut(o, "/")
		kinds = append(kinds, kind)
	}
	return kinds
}

// TestRestoredImport: the importer starts in a hub that a backup was restored into. It reads everything before it
// writes anything.
func TestRestoredImport(t *testing.T) {
	const same, another = types.UID("import-uid"), types.UID("another-uid")
	for name, tc := range map[string]struct {
		reason    string
		uid       types.UID
		change    func(*unstructured.Unstructured)
		lax       bool
		condition string
		want      string
		// untouched means that nothing may be written but the status; kept that nothing may be created.
		untouched, kept bool
	}{
		"Whole": {
			reason: "All is as it was.", uid: same,
			condition: fleetv1alpha1.ConditionReady, want: fleetv1alpha1.ReasonImported,
		},
		"AnotherUID": {
			reason: "Objects with the UID of the former import are deleted and recreated.", uid: another,
			condition: fleetv1alpha1.ConditionReady, want: fleetv1alpha1.ReasonImported,
		},
		"LostAnnotations": {
			reason: "They are put back.", uid: same, change: loseAnnotations,
			condition: fleetv1alpha1.ConditionReady, want: fleetv1alpha1.ReasonImported,
		},
		"LostAnnotationsAndUID": {
			reason: "What has none goes too.", uid: another, change: loseAnnotations,
			condition: fleetv1alpha1.ConditionReady, want: fleetv1alpha1.ReasonImported,
		},
		"NoPolicies": {
			reason: "The admission policies were not restored, so nothing is made.", uid: same, lax: true, untouched: true,
			condition: fleetv1alpha1.ConditionAdmissionEnforced, want: fleetv1alpha1.ReasonCanaryFailed,
		},
		"NoPoliciesAndAnotherUID": {
			reason: "What the former import left goes, and nothing is made.", uid: another, lax: true, kept: true,
			condition: fleetv1alpha1.ConditionAdmissionEnforced, want: fleetv1alpha1.ReasonCanaryFailed,
		},
		"LostPolicies": {
			reason: "A managed resource may do everything now.", uid: same, change: losePolicies, untouched: true,
			condition: fleetv1alpha1.ConditionObserved, want: fleetv1alpha1.ReasonUnexpectedPolicy,
		},
		"LostPoliciesAndUID": {
			reason: "Its deletion could be that of the cluster.", uid: another, change: losePolicies, kept: true,
			condition: fleetv1alpha1.ConditionObserved, want: fleetv1alpha1.ReasonUnexpectedPolicy,
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := newHub(t, anImport())
			first.settle()
			before := first.made()
			h := first.restored(tc.uid, tc.change)
			h.enforced = !tc.lax
			h.settle()
			h.want(tc.condition, tc.want)
			if tc.untouched && len(h.writes) > 0 {
				t.Errorf("%s\nwant nothing written, got %v", tc.reason, h.writes)
			}
			if tc.kept && slices.ContainsFunc(h.writes, func(w string) bool { return strings.HasPrefix(w, "create") }) {
				t.Errorf("%s\nwant nothing created, got %v", tc.reason, h.writes)
			}
			if tc.want == fleetv1alpha1.ReasonUnexpectedPolicy {
				there := h.list(observedCluster)
				if len(there) != 1 || !there[0].GetDeletionTimestamp().IsZero() ||
					!slices.Equal(ownership.ManagementPolicies(&there[0]), []string{"*"}) {
					t.Errorf("%s\nwant it left alone, got %v", tc.reason, there)
				}
				return
			}
			if tc.want == fleetv1alpha1.ReasonImported {
				h.nothingCanAct()
				if got := h.madeBy(string(tc.uid)); !slices.Equal(kindsIn(got), kindsIn(before)) || len(h.made()) != len(before) {
					t.Errorf("%s\nwant as many as %v, got %v of %v", tc.reason, before, got, h.made())
				}
			}
		})
	}
}
