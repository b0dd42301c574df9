// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// otherHub prepares another hub's agent for a fixture's workload cluster, with the same class and claim kind.
func (f *fixture) otherHub(owner hubidentity.Owner) *fixture {
	f.T.Helper()
	g := f.otherHubWithoutTheDefinition(owner)
	g.Publish()
	return g
}

// otherHubWithoutTheDefinition returns a hub that has the class but not the claim kind.
func (f *fixture) otherHubWithoutTheDefinition(owner hubidentity.Owner) *fixture {
	f.T.Helper()
	cfg := secondHubs.Take(f.T).Config
	g := &fixture{Fixture: f.Fixture, fleet: &fakefleet.Fleet{}, registry: prometheus.NewRegistry(), grace: f.grace}
	g.WorkloadUser, g.HubUser, g.Owner, g.HubConfig = "", "", owner, cfg
	g.HubRequests, g.WorkloadRequests = agenttest.NewRequests(f.Number), agenttest.NewRequests(f.Number)
	g.Hub = controllertest.NewClient(f.T, cfg, controllertest.Scheme())
	g.Create(g.Hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.Target}})
	class := &fleetv1alpha1.EnrollmentClass{}
	if err := f.Hub.Get(f.Ctx, client.ObjectKey{Name: f.Class}, class); err != nil {
		f.T.Fatal(err)
	}
	class.ObjectMeta = metav1.ObjectMeta{Name: class.Name}
	g.Create(g.Hub, class)
	return g
}

// restore restores a claim's objects from a hub's backup in another hub.
func (f *fixture) restore(backup *unstructured.Unstructured, password string) *unstructured.Unstructured {
	f.T.Helper()
	out := f.NewClaim(f.Target, backup.GetName())
	out.SetLabels(backup.GetLabels())
	out.SetAnnotations(backup.GetAnnotations())
	out.Object["spec"] = backup.Object["spec"]
	f.Create(f.Hub, out)
	f.CreateConnectionSecret("db-conn", out, password)
	return out
}

// belongings waits until everything of the claim "db" in the workload cluster belongs to one hub only.
func (f *fixture) belongings(owner hubidentity.Owner) {
	f.T.Helper()
	f.WaitForFinalizers("db", owner.ID.Finalizer())
	f.Within("everything names the hub "+string(owner.ID), func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := f.Workload.Get(f.Ctx, client.ObjectKey{Name: f.ClaimCRD().Name}, crd); err != nil {
			return err
		}
		secret := &corev1.Secret{}
		if err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: "db-conn"}, secret); err != nil {
			return err
		}
		claim, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if err != nil {
			return err
		}
		if !owner.IsStamped(crd) || !owner.IsStamped(secret) {
			return fmt.Errorf("labels are %v and %v", crd.Labels, secret.Labels)
		}
		for manager := range propagation.LateEntries(claim) {
			if manager != owner.FieldManager(fleetv1alpha1.LateInitFieldManager) {
				return fmt.Errorf("%s manages fields of the claim", manager)
			}
		}
		if len(propagation.LateEntries(claim)) != 1 {
			return fmt.Errorf("managed fields are %v", claim.GetManagedFields())
		}
		return nil
	})
}

// protectedAllTheTime checks from now on that a fixture's claims have some hub's finalizer.
func (f *fixture) protectedAllTheTime() (check func()) {
	f.T.Helper()
	c, err := client.NewWithWatch(f.WorkloadConfig, client.Options{Scheme: controllertest.Scheme()})
	if err != nil {
		f.T.Fatal(err)
	}
	events, err := c.Watch(f.Ctx, f.NewClaimList(), client.InNamespace(f.Namespace))
	if err != nil {
		f.T.Fatal(err)
	}
	f.T.Cleanup(events.Stop)
	var bare atomic.Value
	go func() {
		for e := range events.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if ok && e.Type != watch.Deleted && !slices.ContainsFunc(u.GetFinalizers(), func(s string) bool {
				return strings.HasPrefix(s, fleetv1alpha1.RequirementFinalizer)
			}) {
				bare.Store(fmt.Sprintf("%s %q", e.Type, u.GetName()))
			}
		}
	}()
	return func() {
		f.T.Helper()
		if got := bare.Load(); got != nil {
			f.T.Errorf("a claim had no finalizer for a moment: %v", got)
		}
	}
}

// withEverything creates a claim with everything that Masthead puts into a workload cluster for it.
func (f *fixture) withEverything() (hub *unstructured.Unstructured, secret *corev1.Secret) {
	f.T.Helper()
	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	hub = f.WaitForPushed("db")
	f.CreateConnectionSecret("db-conn", hub, "one")
	f.LateInitialize("db", map[string]string{"resourceRef": "xdb-1"})
	f.MarkReady("db", "a")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.Within("the Secret arrives", f.SecretIs("db-conn", "one"))
	f.WaitForSpec(f.Workload, f.Namespace, "db", map[string]string{"resourceRef": "xdb-1"})
	f.belongings(f.Owner)
	f.WaitForIdle()
	secret = &corev1.Secret{}
	if err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: "db-conn"}, secret); err != nil {
		f.T.Fatal(err)
	}
	hub, err := f.GetClaim(f.Hub, f.Target, "db")
	if err != nil {
		f.T.Fatal(err)
	}
	return hub, secret
}

// TestAnotherHubLeavesEverythingAlone connects a second hub's agent to a cluster although the marker, which the
// connection honours, names the first hub. It does not release a claim while the first hub deletes the claim's object,
// neither in a reconcile nor when offboarding, whether or not it has the claim kind.
func TestAnotherHubLeavesEverythingAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hub, _ := f.withEverything()
	f.CreateClaim("live")
	f.WaitForSynced("live", fleetv1alpha1.ReasonSynced)
	const held = "example.org/held"
	f.Edit(f.Hub, hub, func() { hub.SetFinalizers(append(hub.GetFinalizers(), held)) })
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.Within("its object is being deleted", func() error {
		if u, err := f.GetClaim(f.Hub, f.Target, "db"); err != nil || u.GetDeletionTimestamp().IsZero() {
			return fmt.Errorf("it is not (%w)", err)
		}
		return nil
	})

	other := f.otherHubWithoutTheDefinition(hubidentity.Owner{ID: "hub-b"})
	nothing := func() {
		t.Helper()
		f.WaitForIdle()
		other.WaitForIdle()
		f.WaitForFinalizers("db", agenttest.OurHub.Finalizer())
		if got := other.WorkloadRequests.Writes(); len(got) != 0 {
			t.Errorf("want nothing written by the other hub, got %v", got)
		}
	}
	other.start()
	nothing()
	other.Publish()
	if message := other.WaitForEvent(fleetv1alpha1.ReasonDefinitionForeign); !strings.Contains(message, `"hub-a"`) {
		t.Errorf("want the message to name the hub, got %q", message)
	}
	nothing()
	other.MustNotExist(other.Target, "db")
	other.MustNotExist(other.Target, "live")
	if err := other.fleet.Offboard(f.Ctx, other.Cluster); err != nil {
		t.Errorf("want the other hub to be done with a cluster in which nothing is its own, got %v", err)
	}
	nothing()

	f.Edit(f.Hub, hub, func() {
		hub.SetFinalizers(slices.DeleteFunc(hub.GetFinalizers(), func(s string) bool { return s == held }))
	})
	f.WaitForGone(f.Hub, f.Target, "db")
	f.WaitForGone(f.Workload, f.Namespace, "db")
}

// TestMoveToAnotherHubLosesNothing follows the procedure in docs/backup.md: the first hub stops without offboarding,
// its backup of the cluster is restored in the second, and that takes the cluster over. Before the backup is restored,
// a claim gets no new, empty object, and keeps what it has.
func TestMoveToAnotherHubLosesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before, secret := f.withEverything()
	f.recorded("db", before)
	f.disengageCluster()
	f.stopAgent()
	check := f.protectedAllTheTime()
	same := func() {
		t.Helper()
		now := &corev1.Secret{}
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(secret), now); err != nil || now.UID != secret.UID || string(now.Data["password"]) != "one" {
			t.Errorf("want the connection Secret to stay, got %v (%v)", now.ObjectMeta, err)
		}
	}

	other := f.otherHub(hubidentity.Owner{ID: "hub-b", Predecessors: []hubidentity.Identity{agenttest.OurHub}})
	other.start()
	other.WaitForMessage("db", fleetv1alpha1.ReasonHubObjectDeleted, other.consent("db"), fleetv1alpha1.RecreateAnnotation)
	other.WaitForIdle()
	other.MustNotExist(other.Target, "db")
	claim := other.WaitForSynced("db", fleetv1alpha1.ReasonHubObjectDeleted)
	if address, _, _ := unstructured.NestedString(claim.Object, "status", "address"); address != "a" {
		t.Errorf("want the status to stay, got %v", claim.Object["status"])
	}
	same()

	restored := other.restore(before, "one")
	other.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	other.belongings(other.Owner)
	other.MarkReady("db", "a")
	other.recorded("db", restored)
	same()
	check()

	claim = f.NewClaim(f.Namespace, "db")
	f.Edit(f.Workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, int64(7), "spec", "storageGB") })
	f.Within("changes travel to the second hub", func() error {
		u, err := other.GetClaim(other.Hub, other.Target, "db")
		if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "storageGB"); err == nil && n != 7 {
			err = fmt.Errorf("storageGB is %d", n)
		}
		return err
	})
	other.WaitForIdle()
	check()
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	other.WaitForGone(other.Hub, other.Target, "db")
	f.WaitForGone(f.Workload, f.Namespace, "db")
	if now, err := f.GetClaim(f.Hub, f.Target, "db"); err != nil || now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("want nothing changed in the first hub, got %v (%v)", now, err)
	}
}

// TestUpgradeCarriesOverWhatNamesNoHub starts with objects written by a version without identities.
func TestUpgradeCarriesOverWhatNamesNoHub(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.Owner = hubidentity.Owner{}
	f.start()
	before, secret := f.withEverything()
	check := f.protectedAllTheTime()

	f.stopAgent()
	f.Owner = hubidentity.Owner{ID: agenttest.OurHub}
	f.restart()
	f.belongings(f.Owner)
	f.WaitForIdle()
	check()
	now := &corev1.Secret{}
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(secret), now); err != nil || now.UID != secret.UID {
		t.Errorf("want the same connection Secret, got %v (%v)", now.ObjectMeta, err)
	}
	if now, err := f.GetClaim(f.Hub, f.Target, "db"); err != nil || now.GetUID() != before.GetUID() {
		t.Errorf("want the same object in the hub, got %v (%v)", now, err)
	}
	written := len(f.WorkloadRequests.Writes())
	f.restart()
	f.lookedAt(1)
	f.WaitForIdle()
	if got := f.WorkloadRequests.Writes(); len(got) != written {
		t.Errorf("want each belonging to be carried over once, got %v", got[written:])
	}
}

// TestClaimIsNotPushedElsewhereWhileItsCreationMayBeUnderWay changes a claim's target after a create without a
// response.
func TestClaimIsNotPushedElsewhereWhileItsCreationMayBeUnderWay(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Now())
	r := &requirementReconciler{hubClient: noWriter{t: t}, clock: c, ledger: &index.Ledger{}, inFlight: index.NewInFlight(c, time.Minute)}
	claim := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	s := &downstream.Scope{Facts: plan.Facts{
		ObjectRequest: multicluster.ObjectRequest{ClusterName: "capi/default/w1"},
		Claim:         claim, Source: ownership.Source{Identifier: "us", Namespace: "team"},
	}}
	place := func(namespace string) ownership.Place {
		return ownership.Place{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: "db"}}
	}
	r.inFlight.Sent(s.ObjectRequest, place("first"), context.DeadlineExceeded)
	_, err := r.push(t.Context(), s, place("second"), nil)
	if result, failed := condition.Result(err); failed != nil || !condition.IsPending(err) || result.RequeueAfter != time.Minute {
		t.Errorf("want the claim to wait until nothing can land any more, got %v", err)
	}
}

// noWriter is a hub that must not be written to.
type noWriter struct {
	client.Writer
	t *testing.T
}

func (w noWriter) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	w.t.Error("something was applied")
	return nil
}
