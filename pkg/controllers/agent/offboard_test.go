// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

func TestLeavingLetsClaimsGoAndReturningTakesThemOver(t *testing.T) {
	t.Parallel()
	const theirs = "example.org/theirs"
	f := newFixture(t)
	f.CreateClaim("gone")
	f.CreateClaim("kept", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{theirs}) })
	gone, kept, lost := f.WaitForPushed("gone"), f.WaitForPushed("kept"), f.settledClaim("lost")
	f.WaitForSynced("gone", fleetv1alpha1.ReasonSynced)
	f.WaitForSynced("kept", fleetv1alpha1.ReasonSynced)
	// A pause keeps no cluster from leaving.
	paused, deleted := f.settledClaim("paused"), f.settledClaim("deleted")
	f.PauseClaim("paused")
	f.PauseClaim("deleted")
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "deleted")); err != nil {
		t.Fatal(err)
	}
	f.WaitForMessage("deleted", fleetv1alpha1.ReasonReconcilePaused, "being deleted")
	f.WaitForIdle()

	// As the provider does: no worker runs any more, but the connection does.
	fakefleet.Drain(t, f.manager.Gate, f.Cluster)
	if err := f.fleet.Offboard(f.Ctx, f.Cluster); err != nil {
		t.Fatal(err)
	}
	f.WaitForFinalizers("gone")
	f.WaitForFinalizers("kept", theirs)
	f.WaitForFinalizers("paused")
	f.WaitForGone(f.Workload, f.Namespace, "deleted")
	f.disengageCluster()
	if claim := f.MustGetClaim("lost"); len(claim.GetFinalizers()) > 0 || claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation] != "" {
		t.Errorf("want nothing of Masthead on the claim, got %v", claim.Object["metadata"])
	}
	// A loss while the cluster is away is none.
	f.DeleteInHub(lost)

	claim := f.NewClaim(f.Namespace, "gone")
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "gone")
	for _, before := range []*unstructured.Unstructured{gone, kept, paused, deleted} {
		now, err := f.GetClaim(f.Hub, f.Target, before.GetName())
		if err != nil || now.GetUID() != before.GetUID() || now.GetDeletionTimestamp() != nil ||
			ownership.Classify(true, now, ownership.Source{Identifier: f.Identifier, Namespace: f.Namespace}) != ownership.Ours {
			t.Errorf("want the objects in the hub to stay and to name their source, got %v (%v)", now.Object, err)
		}
	}

	f.engage()
	f.recorded("lost", f.WaitForRecreated("lost", lost.GetUID()))
	f.WaitForFinalizers("kept", theirs, agenttest.OurFinalizer)
	f.CreateClaim("gone")
	f.WaitForSynced("gone", fleetv1alpha1.ReasonSynced)
	for _, before := range []*unstructured.Unstructured{gone, kept} {
		if now, err := f.GetClaim(f.Hub, f.Target, before.GetName()); err != nil || now.GetUID() != before.GetUID() {
			t.Errorf("want the same object when the cluster is back, got %v (%v)", now.Object, err)
		}
	}
	f.Edit(f.Workload, claim, func() {
		_ = unstructured.SetNestedField(claim.Object, int64(7), "spec", "storageGB")
	})
	f.Within("claims travel again", func() error {
		u, err := f.GetClaim(f.Hub, f.Target, "gone")
		if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "storageGB"); err == nil && n != 7 {
			err = fmt.Errorf("storageGB is %d", n)
		}
		return err
	})
}

func TestLeavingAClusterThatDoesNotAnswerEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 3 * maxOffboardedAtOnce {
		f.CreateClaim(fmt.Sprintf("db-%d", i))
	}
	for i := range 3 * maxOffboardedAtOnce {
		f.WaitForSynced(fmt.Sprintf("db-%d", i), fleetv1alpha1.ReasonSynced)
	}
	f.WaitForIdle()
	fakefleet.Drain(t, f.manager.Gate, f.Cluster)
	w, ok := f.agent.workloads.Get(f.Cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	dead := errors.New("no route to host")
	var attempts sync.Map // Requests per claim, including claims left by other tests.
	var most atomic.Int32
	base, err := client.NewWithWatch(f.WorkloadConfig, client.Options{Scheme: controllertest.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	healthy := w.Client
	w.Client = interceptor.NewClient(base, interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			times, _ := attempts.LoadOrStore(fmt.Sprint(obj.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(obj)), &atomic.Int32{})
			if n := times.(*atomic.Int32).Add(1); n > most.Load() { //nolint:forcetypeassert // Nothing else is stored.
				most.Store(n)
			}
			return dead
		},
	})
	if err := f.agent.requirements.offboard(f.Ctx, w, f.agent.definitions.Offboard); !errors.Is(err, dead) {
		t.Errorf("want the error, got %v", err)
	}
	if n := most.Load(); n != 1 {
		t.Errorf("want each claim to be tried once at most, got %d attempts for one", n)
	}
	w.Client = healthy
	ctx, cancel := context.WithCancel(f.Ctx)
	cancel()
	if err := f.agent.requirements.offboard(ctx, w, f.agent.definitions.Offboard); err == nil {
		t.Error("want no write, and an error, when the time is over")
	}
	if u, err := f.GetClaim(f.Workload, f.Namespace, "db-0"); err != nil || !agenttest.HasOurFinalizer(u) {
		t.Errorf("want the finalizer where it was, got %v (%v)", u.GetFinalizers(), err)
	}
}

// passing is a reader that answers a few lists with a transient error.
type passing struct {
	client.Reader
	answers atomic.Int32
}

func (p *passing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if p.answers.Add(-1) >= 0 {
		return apierrors.NewServiceUnavailable("come again")
	}
	return p.Reader.List(ctx, list, opts...)
}

// TestLeavingBeforeAnybodyHasLooked: a cluster leaves right after the manager has started, or after it was connected:
// no watch has synced, and no reconcile will run any more.
//
//nolint:tparallel // The cases share a fixture.
func TestLeavingBeforeAnybodyHasLooked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tc := range map[string]struct {
		reason string
		given  func(*index.Cluster, index.Followed)
	}{
		"Nothing":  {reason: "Nothing is known.", given: func(*index.Cluster, index.Followed) {}},
		"Followed": {reason: "The kind is followed, and its claims are not known.", given: func(w *index.Cluster, kind index.Followed) { w.Follow(f.ClaimCRD().Name, kind) }},
		"OldVersion": {reason: "The kind is followed in a version that is not served any more.", given: func(w *index.Cluster, kind index.Followed) {
			kind.Kind.Version = "v1alpha0"
			w.Follow(f.ClaimCRD().Name, kind)
		}},
		"Busy": {reason: "The cluster cannot answer for a moment.", given: func(w *index.Cluster, _ index.Followed) {
			busy := &passing{Reader: w.Reader}
			busy.answers.Store(2)
			w.Reader = busy
		}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := strings.ToLower(name)
			f.CreateClaim(claim)
			f.WaitForSynced(claim, fleetv1alpha1.ReasonSynced)
			old, ok := f.agent.workloads.Get(f.Cluster)
			if !ok {
				t.Fatal("the cluster is not engaged")
			}
			kind, _ := old.Followed(f.ClaimCRD().Name)
			fakefleet.Drain(t, f.manager.Gate, f.Cluster)
			connection := old.Connection
			connection.Watcher, connection.Identity = idleWorkload(t, f.Cluster, index.Identity{}).Watcher, index.Identity{}
			w := index.NewCluster(connection)
			f.agent.workloads.Add(t.Context(), w.Name, w)
			tc.given(w, kind)

			if err := f.fleet.Offboard(f.Ctx, f.Cluster); err != nil {
				t.Errorf("%s want no error, got %v", tc.reason, err)
			}
			f.WaitForFinalizers(claim)

			f.agent.workloads.Remove(w.Name, w)
			f.disengageCluster()
			f.Within("the cluster is disengaged", func() error {
				if _, ok := f.agent.workloads.Get(f.Cluster); ok {
					return errors.New("it is not")
				}
				return nil
			})
			f.engage()
			f.WaitForFinalizers(claim, agenttest.OurFinalizer)
		})
	}
}

func TestDisabledClassLeavesNoFinalizerBehind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("db")
	before := f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	class := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: f.Class}}
	f.Edit(f.Hub, class, func() { class.Spec.Agent.Mode = fleetv1alpha1.AgentModeDisabled })
	f.WaitForFinalizers("db")
	f.WaitForIdle()
	if now, err := f.GetClaim(f.Hub, f.Target, "db"); err != nil || now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("want the object in the hub as it was, got %v (%v)", now.Object, err)
	}
	f.Edit(f.Hub, class, func() { class.Spec.Agent.Mode = fleetv1alpha1.AgentModeReadWrite })
	f.WaitForFinalizers("db", agenttest.OurFinalizer)
	if now, err := f.GetClaim(f.Hub, f.Target, "db"); err != nil || now.GetUID() != before.GetUID() {
		t.Errorf("want the same object when the class is back, got %v (%v)", now.Object, err)
	}
}
