// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/limits"
)

func withLimits(cluster, namespace int32) func(*fleetv1alpha1.EnrollmentClass) {
	return func(c *fleetv1alpha1.EnrollmentClass) {
		if cluster > 0 {
			c.Spec.Agent.MaxClaims = &cluster
		}
		if namespace > 0 {
			c.Spec.Agent.MaxClaimsPerNamespace = &namespace
		}
	}
}

// notPushed checks that a claim has no object in the hub, and that no deletion has to wait for it.
func (f *fixture) notPushed(name string) {
	f.T.Helper()
	f.WaitForIdle()
	if obj, err := f.GetClaim(f.Hub, f.Target, name); !apierrors.IsNotFound(err) {
		f.T.Errorf("want nothing in the hub, got %v (%v)", obj.Object, err)
	}
	if claim, err := f.GetClaim(f.Workload, f.Namespace, name); err != nil || agenttest.HasOurFinalizer(claim) {
		f.T.Errorf("want no finalizer, got %v (%v)", claim.GetFinalizers(), err)
	}
}

// TestClaimsBeyondTheLimitWait: what counts is in package index. What a claim leaves in the hub goes on to count:
// creating a claim and orphaning it, again and again, filled the hub.
func TestClaimsBeyondTheLimitWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withLimits(9, 2))
	// A tenant of the hub can make objects that name the cluster.
	stray := f.NewClaim("default", "stray")
	stray.SetAnnotations(f.source().Annotations())
	f.Create(f.Hub, stray)
	f.inHub(stray)
	first, orphaned := f.CreateClaim("a"), f.CreateClaim("b", agenttest.WithDeletionPolicy("Orphan"))
	f.WaitForSynced("a", fleetv1alpha1.ReasonSynced)
	f.WaitForSynced("b", fleetv1alpha1.ReasonSynced)
	f.CreateClaim("c")
	f.WaitForSynced("c", fleetv1alpha1.ReasonClaimLimitReached)
	f.notPushed("c")
	if err := f.Workload.Delete(f.Ctx, first); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Hub, f.Target, "a")
	f.WaitForSynced("c", fleetv1alpha1.ReasonSynced)

	class := &fleetv1alpha1.EnrollmentClass{}
	class.Name = f.Class
	f.Edit(f.Hub, class, func() { withLimits(1, 9)(class) })
	f.CreateClaim("d")
	f.WaitForSynced("d", fleetv1alpha1.ReasonClaimLimitReached)
	f.WaitForIdle()
	for _, there := range []string{"b", "c"} {
		f.WaitForSynced(there, fleetv1alpha1.ReasonSynced)
		f.WaitForPushed(there)
	}

	if err := errors.Join(f.Workload.Delete(f.Ctx, orphaned), f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "c"))); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "b")
	f.WaitForGone(f.Hub, f.Target, "c")
	f.notPushed("d")
	f.DeleteInHub(f.WaitForPushed("b"))
	f.WaitForSynced("d", fleetv1alpha1.ReasonSynced)
}

// TestConcurrentClaimsDoNotExceedTheLimit: what is being created counts.
func TestConcurrentClaimsDoNotExceedTheLimit(t *testing.T) {
	t.Parallel()
	const claims, limit = 24, 5
	f := newFixture(t, withLimits(limit, 0))
	f.WaitForServed()
	for i := range claims {
		f.CreateClaim(fmt.Sprint("db-", i))
	}
	f.lookedAt(claims)
	f.WaitForIdle()
	list := f.NewClaimList()
	if err := f.Hub.List(f.Ctx, list, client.InNamespace(f.Target)); err != nil || len(list.Items) != limit {
		t.Errorf("want %d objects in the hub, got %d (%v)", limit, len(list.Items), err)
	}
}

// isReduced waits until the agent keeps an object of the hub whole, or reduced.
func (f *fixture) isReduced(name string, want bool) {
	f.T.Helper()
	f.Within(fmt.Sprintf("%s is reduced: %t", name, want), func() error {
		w, ok := f.agent.workloads.Get(f.Cluster)
		if !ok {
			return errors.New("the cluster is not engaged")
		}
		kind, _ := w.KindFor(f.ClaimCRD().Name)
		obj, err := f.agent.hub.Watcher.Get(kind, client.ObjectKeyFromObject(f.NewClaim(f.Target, name)))
		if err == nil && index.IsReduced(obj) != want {
			return fmt.Errorf("it is %v", obj.Object)
		}
		return err
	})
}

// TestIdentifierThatIsEnrolledLaterGetsWhatItsObjectsSay: the watch keeps little of an object whose source is not
// enrolled.
func TestIdentifierThatIsEnrolledLaterGetsWhatItsObjectsSay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("old")
	f.WaitForSynced("old", fleetv1alpha1.ReasonSynced)
	f.isReduced("old", false)
	later := ownership.Source{Identifier: f.Identifier + "-later", Namespace: f.Namespace}
	obj := f.NewClaim(f.Target, "db")
	obj.SetAnnotations(later.Annotations())
	obj.Object["spec"] = map[string]any{"version": "5.7", "compositionRef": map[string]any{"name": "chosen-in-the-hub"}}
	f.Create(f.Hub, obj)
	f.MarkReady("db", "10.0.0.1")
	f.isReduced("db", true)
	f.CreateClaim("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonConflict)

	cluster, _ := f.fleet.Lookup(f.Cluster)
	cluster.Identifier = later.Identifier
	f.fleet.Set(cluster)
	claim := f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.Within("what the hub's object says is shown", func() (err error) {
		if claim, err = f.GetClaim(f.Workload, f.Namespace, "db"); err != nil {
			return err
		}
		address, _, _ := unstructured.NestedString(claim.Object, "status", "address")
		composition, _, _ := unstructured.NestedString(claim.Object, "spec", "compositionRef", "name")
		if address != "10.0.0.1" || composition != "chosen-in-the-hub" {
			return fmt.Errorf("it is %v", claim.Object)
		}
		return nil
	})
	f.isReduced("db", false)
	f.isReduced("old", true)
}

// TestClaimsBeyondTheShareOfTheHubAreSynchronised: an object that is not kept whole costs requests, and nothing else.
func TestClaimsBeyondTheShareOfTheHubAreSynchronised(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.options = func(o *Options) { o.HubBudget = limits.NewBudget(1) }
	f.start()
	large := func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"acmeco.org/large": strings.Repeat("x", 64<<10)})
	}
	claim := f.CreateClaim("db", large, agenttest.WithSecret("conn"))
	hub := f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.isReduced("db", true)
	f.CreateConnectionSecret("conn", hub, "s3cret")
	f.MarkReady("db", "10.0.0.1")
	f.Within("the status and the Secret come down", func() error {
		claim, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if err != nil {
			return err
		}
		if address, _, _ := unstructured.NestedString(claim.Object, "status", "address"); address != "10.0.0.1" {
			return fmt.Errorf("its status is %v", claim.Object["status"])
		}
		return f.Workload.Get(f.Ctx, client.ObjectKey{Namespace: f.Namespace, Name: "conn"}, &corev1.Secret{})
	})
	f.Edit(f.Workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, "8", "spec", "version") })
	f.Within("an edit goes up", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "db")
		if version, _, _ := unstructured.NestedString(hub.Object, "spec", "version"); err == nil && version != "8" {
			return fmt.Errorf("the version is %q", version)
		}
		return err
	})
	f.WaitForIdle()
	before := len(f.HubRequests.Filter())
	f.isReduced("db", true)
	if after := len(f.HubRequests.Filter()); after != before {
		t.Errorf("want no request at rest, got %v", f.HubRequests.Filter()[before:])
	}
	f.Edit(f.Hub, hub, func() { hub.SetFinalizers([]string{"acmeco.org/keep"}) })
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	deleting := f.WaitForSynced("db", fleetv1alpha1.ReasonDeleting)
	if address, _, _ := unstructured.NestedString(deleting.Object, "status", "address"); address != "10.0.0.1" {
		t.Errorf("want the status to stay while the object is deleted, got %v", deleting.Object["status"])
	}
	f.Edit(f.Hub, hub, func() { hub.SetFinalizers(nil) })
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.WaitForGone(f.Hub, f.Target, "db")
}
