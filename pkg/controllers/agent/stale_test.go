// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/test/stalekind"
)

// refusals is a DefinitionReporter that remembers what was refused.
type refusals struct {
	nopReporter
	reasons map[string]string
}

func (r refusals) DefinitionRefused(_ mcr.ClusterName, crd, reason, _ string) {
	r.reasons[crd] = reason
}

// TestWhatIsStaleIsNotBelieved is about kinds that can be neither listed nor watched any more: what was known of them last is not known
// to be true, and whoever needs it says so.
func TestWhatIsStaleIsNotBelieved(t *testing.T) {
	claims := bar("").kind
	w := idleWorkload(t, "w1", identity{})
	w.watcher = stalekind.Watcher(t, claims, namespaceKind, ownedSecretKind)
	s := &scope{Request: Request{ClusterName: "w1", Kind: claims}, workload: w}
	h := idleHub()
	h.watcher = w.watcher
	r := &requirementReconciler{hub: h}

	for name, tc := range map[string]struct {
		reason string
		got    *problem
		want   string
	}{
		"Hub":        {reason: "The claims of the kind in the hub.", got: r.unknown(claims), want: ReasonKindNotServed},
		"Namespaces": {reason: "Where claims go.", got: namespacesUnknown(w), want: ReasonWorkloadRejected},
		"Secrets":    {reason: "What was delivered.", got: workloadSecretsUnknown(s), want: ReasonSecretRejected},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got == nil || tc.got.reason != tc.want {
				t.Errorf("%s want %s, got %v", tc.reason, tc.want, tc.got)
			}
		})
	}
	if hub, o := r.look(s, bar("db")); hub != nil || o == nil || o.silent || o.problem == nil {
		t.Errorf("want nothing to be decided by what was known of the hub, got %v, %+v", hub, o)
	}

	reporter := refusals{reasons: map[string]string{}}
	recorder := events.NewFakeRecorder(1)
	d := &definitionReconciler{hub: h, workloads: h.workloads, reporter: reporter, recorder: recorder, refused: map[mcreconcile.Request]string{}}
	crd := claims.GroupResource().String()
	d.accept(t.Context(), w, connection.Cluster{Name: "w1"}, definitionRequest("w1", crd), claims)
	if got := reporter.reasons[crd]; got != ReasonClaimsStale {
		t.Errorf("want the definition to be refused with %s, got %q", ReasonClaimsStale, got)
	}
	if e := <-recorder.Events; !strings.Contains(e, ReasonClaimsStale) {
		t.Errorf("want an event that says so, got %q", e)
	}
	if _, followed := w.followed(crd); followed {
		t.Error("want claims that are not seen to be left alone")
	}
	if state, _ := w.watcher.State(claims); state != kindwatch.StateStale {
		t.Errorf("want the kind to have been stale all the time, got %s", state)
	}
}
