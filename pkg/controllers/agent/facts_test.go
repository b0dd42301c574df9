// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// idleHub is a hub without a watcher.
func idleHub() *index.Hub {
	return index.NewHub(&fakefleet.Fleet{},
		index.NewClusters(index.ClustersOptions{Engaged: func(*index.Cluster) {}, Disengaged: func(mcr.ClusterName) {}}),
		&multicluster.EventQueue[multicluster.ObjectRequest]{}, &multicluster.EventQueue[mcreconcile.Request]{})
}

// fakeHub is a hub with a fake API server that holds the objects.
func fakeHub(t *testing.T, handle func(*index.Hub, kindwatch.Event), objs ...runtime.Object) *index.Hub {
	t.Helper()
	h := idleHub()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		ownershiptest.InBar("").Kind.GroupVersionResource(): "MySQLInstanceList",
	}, objs...)
	var err error
	h.Watcher, err = kindwatch.New(kindwatch.Options{Client: fakefleet.Objects{Interface: client}, Handler: func(e kindwatch.Event) { handle(h, e) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = h.Watcher.Start(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return h
}

func TestNothingIsPushedBeforeTheIndexOfOriginsIsComplete(t *testing.T) {
	us := ownership.Source{Identifier: "w1", Namespace: "foo"}
	marks := us.Annotations()
	marks[fleetv1alpha1.SourceClaimUIDAnnotation] = "claim-uid"
	old := propagation.Intent(agenttest.Parse(t, `{'metadata':{'name':'db'},'spec':{}}`), ownershiptest.InBar("db"), marks, crossplane.FormClaim)
	old.SetNamespace("before")
	listed, goOn := make(chan struct{}), make(chan struct{})
	h := fakeHub(t, func(h *index.Hub, e kindwatch.Event) {
		if e.Object != nil {
			close(listed)
			<-goOn
		}
		h.Handle(e)
	}, old)
	kind := ownershiptest.InBar("").Kind
	h.Want("w1", kind)
	<-listed
	r := &requirementReconciler{hub: h}
	see := func() plan.Plan {
		s := &downstream.Scope{Facts: offeredClaim(agenttest.Parse(t, `{'metadata':{'uid':'claim-uid'}}`))}
		_ = r.observeHub(t.Context(), s)
		return plan.Decide(s.Facts)
	}
	if p := see(); !p.SkipReport || len(p.Steps) > 0 {
		t.Errorf("want to wait while objects are known that are not in the index yet, got %+v", p)
	}
	close(goOn)
	deadline := time.After(2 * time.Minute)
	for {
		o := see()
		if o.Problem != nil && o.Problem.Reason == fleetv1alpha1.ReasonTargetNamespaceChanged {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("want %s, got %+v", fleetv1alpha1.ReasonTargetNamespaceChanged, o)
		case <-time.After(time.Millisecond):
		}
	}
}

// offeredClaim returns the facts of a claim "foo/db" whose target is the namespace "bar" of the hub, where nothing is
// known yet.
func offeredClaim(claim *unstructured.Unstructured) plan.Facts {
	at := ownershiptest.InBar("db")
	return plan.Facts{
		ObjectRequest: multicluster.ObjectRequest{
			ClusterName: "w1", NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}, Kind: at.Kind,
		},
		HubKind: at.Kind, Claim: claim, Source: ownership.Source{Identifier: "w1", Namespace: "foo"},
		Class: &fleetv1alpha1.EnrollmentClass{}, PublishedKnown: true, Published: true, Offered: true, Form: crossplane.FormClaim,
		Pairing: &plan.Pairing{}, Target: &at,
	}
}
