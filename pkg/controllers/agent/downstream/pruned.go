// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// prunedStatus returns what to remember of a status written to a claim.
func prunedStatus(claim *unstructured.Unstructured, reason string, status map[string]any) index.PrunedStatus {
	shown, _ := claim.Object["status"].(map[string]any)
	return index.PrunedStatus{UID: claim.GetUID(), Reason: reason, Written: objects.Digest(withoutTransition(status)), Shown: objects.Digest(shown)}
}

// withoutTransition returns a status without our conditions' transition times: where these are dropped, every computed
// status has the current time.
func withoutTransition(status map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(status)
	conditions, _ := out["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && propagation.IsOurCondition(c["type"]) {
			delete(c, "lastTransitionTime")
		}
	}
	return out
}

// statusPruned reports whether the schema pruned this status when it was written last.
func (r *Reporter) statusPruned(s *Scope, c metav1.Condition, status map[string]any) bool {
	return r.Ledger.Entry(s.ObjectRequest).Pruned == prunedStatus(s.Claim, c.Reason, status)
}

// rememberPruned remembers a status if the cluster did not keep it as it was written.
func (r *Reporter) rememberPruned(s *Scope, after *unstructured.Unstructured, c metav1.Condition, status map[string]any) {
	dropped := propagation.StatusDiffers(after, status)
	r.Ledger.Edit(s.ObjectRequest, func(e *index.Entry) {
		e.Pruned = index.PrunedStatus{}
		if dropped {
			e.Pruned = prunedStatus(after, c.Reason, status)
		}
	})
}

// lastReported returns the reason last written to a claim, and whether there was any.
func (r *Reporter) lastReported(s *Scope) (string, bool) {
	if shown := propagation.AgentSynced(s.Claim); shown != nil {
		reason, _ := shown["reason"].(string)
		return reason, true
	}
	t := r.Ledger.Entry(s.ObjectRequest).Pruned
	return t.Reason, t != index.PrunedStatus{} && t.UID == s.Claim.GetUID()
}
