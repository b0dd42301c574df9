// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

func withInventory(entries []any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"inventory": map[string]any{"entries": entries}}}}
}

// Entries in forms that Flux does not write today are counted, and nothing is revealed of them that may not be seen.
func TestEntriesOfAnInventoryThatAreNotUnderstood(t *testing.T) {
	entry := func(id, version any) any { return map[string]any{"id": id, "v": version} }
	good, long := entry("ns_web__Service", "v1"), strings.Repeat("x", 1200)
	for name, tc := range map[string]struct {
		reason  string
		entries []any
		kept    int
		want    string
	}{
		"None":        {"All of it is understood.", []any{good, entry("_admin_rbac.authorization.k8s.io_ClusterRole", "v1")}, 2, ""},
		"NoVersion":   {"An object has a version.", []any{good, entry("ns_web__Service", "")}, 1, "1 of 2 ... The first is number 2: \"ns_web__Service\"."},
		"NoKind":      {"The first is reported, and all are counted.", []any{entry("ns_a", "v1"), good, entry("ns_b", "v1")}, 1, "2 of 3 ... The first is number 1: \"ns_a\"."},
		"Elsewhere":   {"Nothing of another namespace is reported.", []any{entry("secret_a", "v1")}, 0, "1 of 1 ... The first is number 1."},
		"NoNamespace": {"Nor of an object without a namespace.", []any{entry("_a", "v1"), entry("a", "v1"), entry("ns/a", "v1")}, 0, "3 of 3 ... The first is number 1."},
		"NoText":      {"An entry that is no text is counted.", []any{int64(7), nil, entry(int64(7), true), map[string]any{}, good}, 1, "4 of 5 ... The first is number 1."},
		"Long":        {"It is bounded.", []any{entry("ns_"+long+"__Service", "v1")}, 0, "1 of 1 ... The first is number 1: \"ns_" + long[:60] + "…\"."},
		"Cleaned":     {"It moves no cursor.", []any{entry("ns_\x1b[2J\n", "v1")}, 0, "1 of 1 ... The first is number 1: \"ns_ [2J\"."},
	} {
		t.Run(name, func(t *testing.T) {
			got := inventoryIn(KustomizationGVK.GroupKind(), withInventory(tc.entries))
			if got == nil || len(got.Entries) != tc.kept {
				t.Fatalf("%s Want %d entries to be followed, got %+v", tc.reason, tc.kept, got)
			}
			said := ""
			if p := got.Strange.Problem("infra", Visibility{Own: "ns"}.Namespace); p != nil {
				said = strings.Replace(p.Message,
					"entries of the inventory of \"infra\" are not understood, so the health of what they name is unknown.", "...", 1)
			}
			if said != tc.want {
				t.Errorf("%s\nwant %s\ngot  %s", tc.reason, tc.want, said)
			}
			if again := inventoryIn(KustomizationGVK.GroupKind(), withInventory(tc.entries)); !got.equal(again) {
				t.Error("want equal inventories to be equal")
			}
		})
	}
	many := make([]any, 0, appsv1alpha1.MaxDiscovered+2)
	for i := range appsv1alpha1.MaxDiscovered + 1 {
		many = append(many, entry(fmt.Sprintf("ns_web-%d__Service", i), "v1"))
	}
	got := inventoryIn(KustomizationGVK.GroupKind(), withInventory(append(many, nil)))
	if !got.More || got.Strange.count != 1 || len(got.Entries) != appsv1alpha1.MaxDiscovered {
		t.Errorf("want what is beyond the bound to be counted too, got %d, %t, %+v", len(got.Entries), got.More, got.Strange)
	}
}
