// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/scope"
)

// told is what is remembered about writing a status to a claim.
func told(claim *unstructured.Unstructured, reason string, status map[string]any) ledger.ToldStatus {
	shown, _ := claim.Object["status"].(map[string]any)
	return ledger.ToldStatus{UID: claim.GetUID(), Reason: reason, Written: propagation.HashOf(withoutTransition(status)), Shown: propagation.HashOf(shown)}
}

// withoutTransition is a status without the times of our conditions' last transitions: where these are dropped, each
// status that is made says that it was now.
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

// toldInVain is whether a claim that shows what it shows now was told that status already.
func (r *Reporter) toldInVain(s *scope.Scope, c metav1.Condition, status map[string]any) bool {
	return r.Ledger.Of(s.Request).Told == told(s.Claim, c.Reason, status)
}

// rememberTold remembers a status that did not stay as it was written.
func (r *Reporter) rememberTold(s *scope.Scope, after *unstructured.Unstructured, c metav1.Condition, status map[string]any) {
	dropped := propagation.StatusDiffers(after, status)
	r.Ledger.Edit(s.Request, func(e *ledger.Entry) {
		e.Told = ledger.ToldStatus{}
		if dropped {
			e.Told = told(after, c.Reason, status)
		}
	})
}

// lastTold is the reason that a claim was told last, and whether it was told any.
func (r *Reporter) lastTold(s *scope.Scope) (string, bool) {
	if shown := propagation.AgentSynced(s.Claim); shown != nil {
		reason, _ := shown["reason"].(string)
		return reason, true
	}
	t := r.Ledger.Of(s.Request).Told
	return t.Reason, t != ledger.ToldStatus{} && t.UID == s.Claim.GetUID()
}
