// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"maps"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// TestInactiveKindAmongActiveOnes: the namespaced kinds of a cloud are active but for one, which the hub serves in its
// cluster-scoped group. The import would use two provider configurations.
func TestInactiveKindAmongActiveOnes(t *testing.T) {
	served := reflection.Schemas{reflection.EKSClusterAuth.Legacy(): {Version: "v1beta1"}}
	for _, kind := range reflection.Kinds(reflection.EKS) {
		if kind != reflection.EKSClusterAuth {
			served[kind.Namespaced()] = reflection.Schema{Version: "v1beta1"}
		}
	}
	for state, want := range map[string]string{"Inactive": fleetv1alpha1.ReasonKindsInactive, "Active": fleetv1alpha1.ReasonKindsMissing} {
		t.Run(state, func(t *testing.T) {
			h := newHub(t, anImport(), resourceDefinition("clusterauths.eks.aws.m.upbound.io", state))
			var stopped *condition.Error
			if err := h.r.oneGeneration(t.Context(), reflection.EKS, served); !errors.As(err, &stopped) || stopped.Reason != want {
				t.Errorf("want a stop with %s, got %v", want, err)
			}
		})
	}
}

// TestRevokedRightIsReported: an administrator revokes a right of the manager while an import is idle.
func TestRevokedRightIsReported(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	imp := h.get()
	imp.Spec.NodePools.Names = []string{"red"}
	if err := h.c.Update(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	before := h.made()
	h.hub.forbids = reflection.EKSNodeGroup.Namespaced()
	if _, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: h.key}); !apierrors.IsForbidden(err) {
		t.Errorf("want the refusal of the API server, so that it is tried again, got %v", err)
	}
	h.want(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonRightsMissing)
	if now := h.made(); len(now) != len(before) {
		t.Errorf("want what there was, %v, got %v", before, now)
	}
	h.hub.forbids = schema.GroupKind{}
	h.settle()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
}

// TestClusterOfAnotherManagerIsNotReflected: the cluster in the cloud bears the mark of a Cluster API, before it is
// imported or afterwards. Nothing is reflected, what is reflected is left unchanged, and the import continues when the
// mark is removed.
func TestClusterOfAnotherManagerIsNotReflected(t *testing.T) {
	mark := map[string]any{"sigs.k8s.io/cluster-api-provider-aws/cluster/theirs": "owned"}
	t.Run("Before", func(t *testing.T) {
		h := newHub(t, anImport())
		h.tags = mark
		h.settle()
		h.want(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonManagedByClusterAPI)
		h.want(fleetv1alpha1.ConditionStalled, fleetv1alpha1.ReasonManagedByClusterAPI)
		for _, gvk := range importertest.ReflectedKinds(reflection.EKS) {
			if there := h.list(gvk); len(there) > 0 {
				t.Errorf("want nothing reflected, got %d of %s", len(there), gvk.Kind)
			}
		}
		h.unimport()
		h.isGone()
		if left := h.made(); len(left) > 0 {
			t.Errorf("want nothing left, got %v", left)
		}
	})
	t.Run("Afterwards", func(t *testing.T) {
		h := newHub(t, anImport())
		h.settle()
		before := h.object(clusterKind, "customers", "shop")
		show := func(tags map[string]any) {
			m := h.list(observedCluster)[0]
			h.change(&m, tags, "status", "atProvider", "tags")
			h.settle()
		}
		show(mark)
		h.want(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonManagedByClusterAPI)
		if now := h.object(clusterKind, "customers", "shop"); now.GetResourceVersion() != before.GetResourceVersion() {
			t.Error("the reflection was touched")
		}
		show(map[string]any{})
		h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	})
	t.Run("Acknowledged", func(t *testing.T) {
		imp := anImport()
		theirs := "sigs.k8s.io/cluster-api-provider-aws/cluster/" + strings.Repeat("theirs", 10)
		mark := map[string]any{theirs: "owned"}
		imp.Spec.AcknowledgedTags = []string{theirs}
		h := newHub(t, imp.DeepCopy())
		h.tags = map[string]any{theirs + "-other": "owned"}
		maps.Copy(h.tags, mark)
		h.settle()
		h.want(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonManagedByClusterAPI)
		h = newHub(t, imp)
		h.tags = mark
		h.settle()
		h.want(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonTagsOfOthers)
		h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	})
}

// TestClusterWithTagsOfOthersIsImported: a Crossplane of another hub made the cluster, or Terraform left its tags.
func TestClusterWithTagsOfOthersIsImported(t *testing.T) {
	h := newHub(t, anImport())
	h.tags = map[string]any{"crossplane-name": "prod-x7k2p", "kubernetes.io/cluster/prod": "owned"}
	h.settle()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	h.want(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonTagsOfOthers)
	m := h.list(observedCluster)[0]
	h.change(&m, map[string]any{}, "status", "atProvider", "tags")
	h.settle()
	if c := meta.FindStatusCondition(h.get().Status.Conditions, fleetv1alpha1.ConditionAlreadyManaged); c != nil {
		t.Errorf("want no condition without such tags, got %v", c)
	}
}

// TestImportWaitsForItsProvider: no Crossplane provider reconciles the managed resources.
func TestImportWaitsForItsProvider(t *testing.T) {
	h := newHub(t, anImport())
	for range 5 {
		if _, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: h.key}); err != nil {
			t.Fatal(err)
		}
	}
	h.want(fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonWaitingForProvider)
	for _, gvk := range importertest.ReflectedKinds(reflection.EKS) {
		if there := h.list(gvk); len(there) > 0 {
			t.Errorf("%s is reflected without having been observed", gvk.Kind)
		}
	}
}

// TestPoolsWithoutSource: EKS lists its node groups nowhere, and there is no kubeconfig to ask for Nodes.
func TestPoolsWithoutSource(t *testing.T) {
	imp := anImport()
	imp.Spec.EKS.NodeGroupNames = nil
	h := newHub(t, imp)
	h.settle()
	h.want(fleetv1alpha1.ConditionNodePoolsComplete, fleetv1alpha1.ReasonPoolsUnknown)
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	if pools := h.list(machinePoolKind); len(pools) > 0 {
		t.Errorf("want no pool invented, got %d", len(pools))
	}
}

func TestAllows(t *testing.T) {
	for _, tc := range []struct {
		list, namespace string
		want            bool
	}{
		{"", "a", false}, {"a", "a", true}, {"b, a", "a", true}, {"aa", "a", false}, {"*", "a", true}, {"a*", "ab", false},
	} {
		if got := allows(tc.list, tc.namespace); got != tc.want {
			t.Errorf("allows(%q, %q): want %v, got %v", tc.list, tc.namespace, tc.want, got)
		}
	}
}

// TestNothingIsReadWithoutRights: config/imports was not applied, and a user of the hub creates an import that names a
// Secret, and deletes it. Nothing of the hub is read for it, so that its status says nothing about the Secret.
func TestNothingIsReadWithoutRights(t *testing.T) {
	imp := anImport()
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &fleetv1alpha1.SecretKeyReference{Name: "theirs", Key: "token"},
	}
	h := newHub(t, imp)
	h.hub.denied, h.r.mapper, h.r.live = createObjects, nil, nil
	reconcileOnce := func() {
		t.Helper()
		if _, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: h.key}); err != nil {
			t.Fatal(err)
		}
	}
	reconcileOnce()
	h.want(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonRightsMissing)
	if err := h.c.Delete(t.Context(), h.get()); err != nil {
		t.Fatal(err)
	}
	reconcileOnce()
}
