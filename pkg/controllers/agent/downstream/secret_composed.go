// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// pullComposed copies the Secrets that the hub's composite controls to the workload cluster, and deletes copies of
// those that it no longer composes. A problem of one does not block the others, and the first is reported.
func (r *Secrets) pullComposed(ctx context.Context, s *Scope, hub *unstructured.Unstructured) error {
	if state, _ := r.Hub.Watcher.State(index.HubComposedSecretKind); state != kindwatch.StateSynced {
		return r.secretUnknown(index.HubComposedSecretKind)
	}
	if state, _ := s.Workload.Watcher.State(index.OwnedSecretKind); state != kindwatch.StateSynced {
		return workloadSecretsUnknown(s)
	}
	wanted := sets.New(r.Hub.ComposedSecrets(hub)...)
	for _, name := range s.Workload.Copies(s.Claim) {
		if composes(hub, name) {
			wanted.Insert(name)
		}
	}
	for name := range wanted {
		// The composition's author wants it so, and there is nothing to report.
		if r.withheld(hub, composedDelivery(s, hub, name)) {
			wanted.Delete(name)
		}
	}
	var all Outcome
	err := all.Note(r.deleteCopies(ctx, s, wanted))
	for _, name := range sets.List(wanted) {
		if err != nil {
			return err
		}
		err = all.Note(r.pullOne(ctx, s, hub, composedDelivery(s, hub, name)))
	}
	switch {
	case err != nil:
		return err
	case all.Problem != nil:
		return all.Problem.RetriedAfter(all.RequeueAfter)
	}
	return condition.PendingError{After: all.RequeueAfter}
}

func composedDelivery(s *Scope, hub *unstructured.Unstructured, name string) delivery {
	return delivery{
		watched: index.HubComposedSecretKind,
		from:    types.NamespacedName{Namespace: hub.GetNamespace(), Name: name},
		to:      types.NamespacedName{Namespace: s.Namespace, Name: name},
	}
}

// composes reports whether a composite without such a Secret may still be about to compose it: Crossplane has not
// reported yet that everything is composed, or the composite still refers to the Secret. Crossplane deletes what it no
// longer composes before it drops the reference. Until then the copy is kept, so that its consumers keep working while
// the Secret is recreated.
func composes(hub *unstructured.Unstructured, name string) bool {
	if !condition.IsTrue(hub, "Synced") {
		return true
	}
	references, _, _ := unstructured.NestedSlice(hub.Object, "spec", crossplane.CrossplaneField, "resourceRefs")
	for _, r := range references {
		if r, ok := r.(map[string]any); ok && r["apiVersion"] == "v1" && r["kind"] == "Secret" && r["name"] == name {
			return true
		}
	}
	return false
}
