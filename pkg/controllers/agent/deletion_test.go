// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/scope"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestNothingIsDeletedBeforeTheHubIsKnown(t *testing.T) {
	// The watch of the hub has not begun. There are no clients: any request would panic.
	h := idleHub()
	h.Watcher = idleWorkload(t, "hub", view.Identity{}).Watcher
	kind := ownershiptest.InBar("").Kind
	h.Watcher.Set(view.OwnerClaims, kind)
	r := &requirementReconciler{hub: h}
	claim := agenttest.Parse(t, `{'metadata': {'name': 'db', 'namespace': 'foo', 'finalizers': ['agent.masthead.dev/requirement']}}`)
	claim.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	s := &scope.Scope{Facts: offeredClaim(claim)}
	s.Protected = true
	if state, _ := h.Watcher.State(kind); state == kindwatch.StateSynced {
		t.Fatal("the watch has begun")
	}
	_ = r.seeHub(t.Context(), s)
	if p := plan.Decide(s.Facts); len(p.Steps) > 0 || !p.Silent {
		t.Errorf("want a deletion to wait, got %+v", p)
	}
	s.Vanished = true
	if p := plan.Decide(s.Facts); len(p.Steps) > 0 || !p.Silent || !p.Slowly {
		t.Errorf("want a claim that vanished to wait and to be looked at again, got %+v", p)
	}
}

func TestIdentifierThatChangesDeletesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.claim("db")
	before := f.pushed("db")
	f.synced("db", reason.ReasonSynced)
	f.settled()
	old := f.source()

	cluster, ok := f.fleet.Lookup(f.cluster)
	if !ok {
		t.Fatal("the cluster is not enrolled")
	}
	cluster.Identifier = f.identifier + "-new"
	f.fleet.Set(cluster)
	f.conflictsWith(old)
	if err := f.workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")
	if now := f.heldBy(f.target, old); now.GetUID() != before.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Errorf("want what was pushed under another identifier to stay, got %v", now.Object)
	}
}

func TestClaimDeletedWhileDisconnectedIsDeletedInTheHubLater(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.claim("db")
	f.pushed("db")
	f.synced("db", reason.ReasonSynced)
	f.settled()
	f.disengageCluster()
	f.Within("the cluster is disengaged", func() error {
		if _, ok := f.agent.workloads.Get(f.cluster); ok {
			return errors.New("it is not")
		}
		return nil
	})
	if err := f.workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.settled()
	if hub, err := f.get(f.hub, f.target, "db"); err != nil || hub.GetDeletionTimestamp() != nil {
		t.Errorf("want nothing to be deleted while the cluster is away, got %v (%v)", hub.Object, err)
	}
	f.engage()
	f.gone(f.workload, f.namespace, "db")
	f.gone(f.hub, f.target, "db")
}
