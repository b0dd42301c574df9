// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/stalekind"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// TestWhatIsStaleIsNotBelieved: kinds can be neither listed nor watched any more. Their cache is not trusted, and what
// depends on it is reported.
func TestWhatIsStaleIsNotBelieved(t *testing.T) {
	claims := ownershiptest.InBar("").Kind
	w := idleWorkload(t, "w1", index.Identity{})
	w.Watcher = stalekind.Watcher(t, claims, index.NamespaceKind, index.OwnedSecretKind)
	s := &downstream.Scope{Facts: offeredClaim(agenttest.Parse(t, `{}`)), Workload: w}
	h := idleHub()
	h.Watcher = w.Watcher
	r := &requirementReconciler{hub: h}

	for name, tc := range map[string]struct {
		reason string
		got    *condition.Error
		want   string
	}{
		"Hub":        {reason: "The claims of the kind in the hub.", got: hubKindProblem(r.hub, claims), want: fleetv1alpha1.ReasonKindNotServed},
		"Namespaces": {reason: "Where claims go.", got: namespacesUnknown(w), want: fleetv1alpha1.ReasonWorkloadRejected},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got == nil || tc.got.Reason != tc.want {
				t.Errorf("%s want %s, got %v", tc.reason, tc.want, tc.got)
			}
		})
	}
	_ = r.observeHub(t.Context(), s)
	if p := plan.Decide(s.Facts); len(p.Steps) > 0 || p.SkipReport || p.Problem == nil {
		t.Errorf("want nothing to be decided by what was known of the hub, got %+v", p)
	}

	reasons := map[string]string{}
	reporter := func(_ mcr.ClusterName, crd string, _ bool, problem *condition.Error) {
		if problem != nil {
			reasons[crd] = problem.Reason
		}
	}
	recorder := events.NewFakeRecorder(1)
	d := definition.New(definition.Options{Hub: h, Workloads: h.Clusters, Reporter: reporter, Recorder: recorder, Metrics: downstream.New(nil)})
	crd := claims.GroupResource().String()
	if _, err := d.Accept(t.Context(), w, connection.Cluster{Name: "w1"}, index.DefinitionRequest("w1", crd), claims); err != nil {
		t.Fatal(err)
	}
	if got := reasons[crd]; got != fleetv1alpha1.ReasonClaimsStale {
		t.Errorf("want the definition to be refused with %s, got %q", fleetv1alpha1.ReasonClaimsStale, got)
	}
	if e := <-recorder.Events; !strings.Contains(e, fleetv1alpha1.ReasonClaimsStale) {
		t.Errorf("want an event that says so, got %q", e)
	}
	if _, followed := w.Followed(crd); followed {
		t.Error("want claims that are not seen to be left alone")
	}
	if state, _ := w.Watcher.State(claims); state != kindwatch.StateStale {
		t.Errorf("want the kind to have been stale all the time, got %s", state)
	}
}
