// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// idleWorkload is an instance of a cluster whose watcher does not run.
func idleWorkload(t *testing.T, name mcr.ClusterName, id identity) *workload {
	t.Helper()
	watcher, err := kindwatch.New(kindwatch.Options{Client: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), Handler: func(kindwatch.Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	return newWorkload(workloadConnection{name: name, identity: id, watcher: watcher})
}

func TestNothingIsKeptOfClaimsWhoseKindOrClusterIsGone(t *testing.T) {
	kind := bar("").kind
	crd := kind.GroupResource().String()
	newer := kind
	newer.Version = "v2"
	for name, tc := range map[string]struct {
		reason string
		goes   func(*definitionReconciler, *hub, *workload)
	}{
		"Unfollowed":   {reason: "A kind that is not followed any more.", goes: func(d *definitionReconciler, _ *hub, w *workload) { d.unfollow(w, crd) }},
		"OtherVersion": {reason: "A kind that is followed in another version.", goes: func(d *definitionReconciler, _ *hub, w *workload) { d.follow(w, crd, followed{kind: newer}) }},
		"Disengaged": {reason: "A cluster that is gone.", goes: func(_ *definitionReconciler, h *hub, w *workload) {
			h.workloads.remove(nil, w)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := idleHub()
			w := idleWorkload(t, "w1", identity{})
			h.watcher = w.watcher
			h.workloads.add(nil, w)
			registry := prometheus.NewRegistry()
			r := &requirementReconciler{
				identities: &identities{}, bursts: newBursts(clock.RealClock{}),
				hub: h, workloads: h.workloads, metrics: NewMetrics(registry),
			}
			d := &definitionReconciler{hub: h, workloads: h.workloads, kindGone: r.forgetKind}
			d.follow(w, crd, followed{kind: kind})
			req := Request{ClusterName: "w1", Kind: kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
			work := func() {
				h.wait(bar("db"), req)
				r.ledger.edit(req, func(e *entry) { e.shown = "x" })
				r.bursts.sign(req.ClusterName)
				r.metrics.requirement(req, ReasonSynced)
			}
			left := func() int {
				n := len(h.waitingFor(bar("db"))) + len(r.ledger.entries) + len(r.metrics.reasons)
				return n + int(testutil.ToFloat64(r.metrics.requirements.WithLabelValues("w1", ReasonSynced)))
			}
			work()
			tc.goes(d, h, w)
			if name != "Disengaged" && left() != 0 {
				t.Errorf("%s want nothing to be left, got %d", tc.reason, left())
			}
			// A reconcile that was under way ends afterwards.
			work()
			r.tidy(req)
			if left() != 0 {
				t.Errorf("%s want nothing to be left of a reconcile that was under way, got %d", tc.reason, left())
			}
			if name == "Disengaged" && len(r.bursts.clusters) != 0 {
				t.Errorf("%s want its bursts to be forgotten", tc.reason)
			}
		})
	}
}

func TestNothingIsTakenOverFromAnotherCluster(t *testing.T) {
	kind := bar("").kind
	crd := kind.GroupResource().String()
	for name, tc := range map[string]struct {
		reason   string
		old, now identity
		takeOver bool
	}{
		"Same":        {reason: "The same cluster reached in another way.", old: identity{"a", "x"}, now: identity{"a", "x"}, takeOver: true},
		"OtherObject": {reason: "Another enrolled object of the same name.", old: identity{"a", "x"}, now: identity{"b", "x"}},
		"OtherUID":    {reason: "Another cluster behind the same object.", old: identity{"a", "x"}, now: identity{"a", "y"}},
		"Unknown":     {reason: "What is not known is not the same.", old: identity{"a", ""}, now: identity{"a", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var gone []mcr.ClusterName
			s := newWorkloads(workloadOptions{engaged: func(*workload) {}, disengaged: func(name mcr.ClusterName) { gone = append(gone, name) }})
			old, now := idleWorkload(t, "w1", tc.old), idleWorkload(t, "w1", tc.now)
			old.follow(crd, followed{kind: kind})
			old.wrote(types.NamespacedName{Name: "s"}, copyState{version: "7"})
			s.add(nil, old)
			s.add(nil, now)
			_, kinds := now.kindOf(crd)
			if kinds != tc.takeOver || (now.wroteVersion(types.NamespacedName{Name: "s"}) == "7") != tc.takeOver || (len(gone) == 0) != tc.takeOver {
				t.Errorf("%s want taken over %v, got kinds %v, secrets %v, disengaged %d", tc.reason, tc.takeOver, kinds, now.secrets, len(gone))
			}
			s.remove(nil, old)
			if len(gone) > 1 || !s.current(now) {
				t.Errorf("%s want the old one to be disengaged at most once and the new one to count", tc.reason)
			}
		})
	}
}
