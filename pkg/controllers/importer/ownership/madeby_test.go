// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
)

// TestMadeBy: the label alone, the name alone, and both in another namespace make no object an import's.
func TestMadeBy(t *testing.T) {
	for _, uid := range []types.UID{"import-uid", "another", ""} {
		for _, namespace := range []string{"customers", "restored"} {
			for _, name := range []string{"shop", "copy"} {
				imp := anImport()
				imp.UID = uid
				o := &unstructured.Unstructured{Object: map[string]any{}}
				o.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
				o.SetNamespace(namespace)
				o.SetName(name)
				o.SetLabels(ownership.Marks(imp))
				wanted := ownership.WantedImport(anImport())
				if got, want := ownership.MarkedBy(o, wanted), uid == "import-uid"; got != want {
					t.Errorf("MarkedBy(%s/%s of %q): want %v, got %v", namespace, name, uid, want, got)
				}
				if got, want := ownership.MadeBy(o, wanted), uid == "import-uid" && namespace == "customers" && name == "shop"; got != want {
					t.Errorf("MadeBy(%s/%s of %q): want %v, got %v", namespace, name, uid, want, got)
				}
				if got := ownership.ImportNamedBy(o); got != (types.NamespacedName{Namespace: "customers", Name: "shop"}) {
					t.Errorf("ImportNamedBy(): got %s", got)
				}
			}
		}
	}
}
