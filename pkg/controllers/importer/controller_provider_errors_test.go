// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// denied makes the cloud refuse to show a kind until the end of the test, or until it is allowed.
func (w *world) denied(t *testing.T, kind reflection.Kind) (allow func()) {
	t.Helper()
	name := kind.Legacy().Group + "/" + kind.Kind
	w.Cloud.Deny(name)
	allow = func() { w.Cloud.Allow(name) }
	t.Cleanup(allow)
	return allow
}

// importDenied imports a cluster of EKS with the pool "blue", while the cloud refuses to show a kind of it.
func (w *world) importDenied(t *testing.T, name, cluster string, kind reflection.Kind) (imp *fleetv1alpha1.ClusterImport, allow func()) {
	t.Helper()
	w.Cloud.FailOnMutation(t)
	w.AddEKS(t, cluster, "blue")
	allow = w.denied(t, kind)
	imp = importertest.NewEKSImport(name, cluster, "blue")
	w.Create(t, imp)
	return imp, allow
}

// TestProviderWithoutRights: the provider's identity may read nothing at first, and loses its rights again later.
// Without an observation nothing is reflected; what is reflected, and the connection, stay. The import continues as
// soon as the provider has its rights, and un-import does not need them.
func TestProviderWithoutRights(t *testing.T) {
	w := modern(t)
	imp, allow := w.importDenied(t, "denied", "cafe1111", reflection.EKSCluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonProviderError)
	importertest.Eventually(t, "the status says what the provider says", func() (bool, string) {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp); err != nil {
			return false, err.Error()
		}
		c := meta.FindStatusCondition(imp.Status.Conditions, fleetv1alpha1.ConditionReady)
		return strings.Contains(c.Message, "AccessDeniedException"), c.Message
	})
	if !meta.IsStatusConditionTrue(imp.Status.Conditions, fleetv1alpha1.ConditionStalled) {
		t.Errorf("the provider lacks rights, and the status does not say so: %v", imp.Status.Conditions)
	}
	for _, gvk := range importertest.ReflectedKinds(reflection.EKS) {
		if there := w.ListLabelled(t, imp, gvk); len(there) > 0 {
			t.Errorf("%s is reflected without having been observed", gvk.Kind)
		}
	}

	allow()
	w.TouchManaged(t, imp, reflection.EKSCluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	pool := "MachinePool/" + reflection.PoolName(imp.Name, "blue")
	importertest.Eventually(t, "the pool is reflected", func() (bool, string) {
		all := w.ListMade(t, imp)
		return slices.Contains(all, pool), fmt.Sprint(all)
	})
	before, connected := w.ListMade(t, imp), imp.Status.Kubeconfig
	allow = w.denied(t, reflection.EKSCluster)
	w.TouchManaged(t, imp, reflection.EKSCluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonProviderError)
	if now := w.ListMade(t, imp); !containsAll(now, before) || connected == nil || imp.Status.Kubeconfig == nil {
		t.Errorf("want what there was, %v, got %v", before, now)
	}
	allow()
	w.TouchManaged(t, imp, reflection.EKSCluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	w.denied(t, reflection.EKSCluster)
	w.TouchManaged(t, imp, reflection.EKSCluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonProviderError)
	w.Unimport(t, imp)
}

// TestProviderWithoutRightsToPools: the identity may show the cluster and not its node groups. The pool is not
// reflected, and is not taken for a deleted one.
func TestProviderWithoutRightsToPools(t *testing.T) {
	w := modern(t)
	imp, allow := w.importDenied(t, "denied-pools", "cafe2222", reflection.EKSNodeGroup)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonProviderError)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionNodePoolsComplete, fleetv1alpha1.ReasonPoolsMissing)
	allow()
	w.TouchManaged(t, imp, reflection.EKSNodeGroup)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	pool := "MachinePool/" + reflection.PoolName(imp.Name, "blue")
	importertest.Eventually(t, "the pool is reflected", func() (bool, string) {
		all := w.ListMade(t, imp)
		return slices.Contains(all, pool), fmt.Sprint(all)
	})
	w.denied(t, reflection.EKSNodeGroup)
	w.TouchManaged(t, imp, reflection.EKSNodeGroup)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonProviderError)
	if all := w.ListMade(t, imp); !slices.Contains(all, pool) {
		t.Errorf("a pool that cannot be looked at is not one that went: %v", all)
	}
	w.Unimport(t, imp)
}

// TestThrottledProvider: the cloud refuses requests because there are too many. The import waits until the cloud
// accepts requests again, and keeps the managed resource that it created.
func TestThrottledProvider(t *testing.T) {
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	w.AddEKS(t, "cafe3333")
	const many = 1 << 20
	w.Cloud.Throttle(many)
	t.Cleanup(func() { w.Cloud.Throttle(0) })
	imp := importertest.NewEKSImport("throttled", "cafe3333")
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonProviderError)
	cluster := w.ListLabelled(t, imp, w.ManagedKind(t, reflection.EKSCluster))
	if len(cluster) != 1 {
		t.Fatalf("want one managed resource of the cluster, got %d", len(cluster))
	}
	w.Cloud.Throttle(0)
	w.TouchManaged(t, imp, reflection.EKSCluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	now := cluster[0].DeepCopy()
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil || now.GetUID() != cluster[0].GetUID() {
		t.Errorf("the managed resource was replaced: %v", err)
	}
	w.Unimport(t, imp)
}
