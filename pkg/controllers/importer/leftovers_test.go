// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
)

// restart simulates a manager that was just started: it watches nothing yet.
func (h *hubOfOneImport) restart() {
	on := []schema.GroupVersionKind{}
	h.r.watch = func(_ context.Context, gvk schema.GroupVersionKind) error {
		on = append(on, gvk)
		return nil
	}
	h.r.watched = func() []schema.GroupVersionKind { return on }
}

// orphan removes the finalizer of the import and deletes it, as a user could while the manager does not run.
func (h *hubOfOneImport) orphan() {
	h.t.Helper()
	imp := h.get()
	imp.Finalizers = nil
	if err := h.c.Update(h.t.Context(), imp); err != nil {
		h.t.Fatal(err)
	}
	if err := h.c.Delete(h.t.Context(), imp); err != nil {
		h.t.Fatal(err)
	}
	h.restart()
}

func (h *hubOfOneImport) leftovers(want ...types.NamespacedName) {
	h.t.Helper()
	got, err := h.r.leftovers(h.t.Context())
	if err != nil || !slices.Equal(got, want) {
		h.t.Errorf("want %v to have left something, got %v, %v", want, got, err)
	}
}

// TestNothingIsLeftWhileTheManagerIsDown: a user removes the finalizer of the last ClusterImport and deletes it,
// while the manager does not run. The managed resources would observe for ever, and the kubeconfig would work.
func TestNothingIsLeftWhileTheManagerIsDown(t *testing.T) {
	t.Run("Everything", func(t *testing.T) {
		imp, token := importWithToken("true")
		h := newHub(t, imp, token)
		h.connected()
		h.orphan()
		h.leftovers(h.key)
		h.settle()
		if left := h.made(); len(left) > 0 {
			t.Errorf("want nothing left, got %v", left)
		}
		h.leftovers()
	})
	t.Run("KubeconfigAlone", func(t *testing.T) {
		imp, token := importWithToken("true")
		h := newHub(t, imp, token)
		h.connected()
		for _, gvk := range kindsOfEKS() {
			for _, o := range h.list(gvk) {
				if err := h.c.Delete(t.Context(), &o); err != nil {
					t.Fatal(err)
				}
			}
		}
		h.orphan()
		h.leftovers(h.key)
		h.settle()
		if left := h.made(); len(left) > 0 {
			t.Errorf("want nothing left, got %v", left)
		}
	})
	t.Run("CreatedAgain", func(t *testing.T) {
		imp, token := importWithToken("true")
		h := newHub(t, imp, token)
		h.connected()
		h.orphan()
		next, _ := importWithToken("true")
		next.UID = "next-uid"
		h.create(next)
		h.leftovers(h.key)
		h.settle()
		if left := h.madeBy("import-uid"); len(left) > 0 {
			t.Errorf("want nothing left of the former import, got %v", left)
		}
		h.want(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
	})
}

// TestLeftoversHaveNoImport: objects of an existing import are no leftovers, nor are objects that name no import.
func TestLeftoversHaveNoImport(t *testing.T) {
	h := newHub(t, anImport(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "customers", Name: "unnamed", Labels: map[string]string{fleetv1alpha1.ImportUIDLabel: "u"},
	}})
	h.settle()
	h.restart()
	h.leftovers()
	if on := h.r.watched(); len(on) > 0 {
		t.Errorf("nothing has to be watched, got %v", on)
	}
}

// TestKubeconfigOfAnotherImportIsKept: the Secret has the name of one of this import's Secrets, and the labels of
// another import.
func TestKubeconfigOfAnotherImportIsKept(t *testing.T) {
	theirs := anImport()
	theirs.Name, theirs.UID = "theirs", "their-uid"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "customers", Name: "shop-kubeconfig", UID: "secret-uid", Labels: ownership.Marks(theirs),
	}}
	h := newHub(t, anImport(), secret)
	if err := h.c.Delete(t.Context(), h.get()); err != nil {
		t.Fatal(err)
	}
	h.restart()
	h.settle()
	if err := h.c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Errorf("want the Secret of another import kept, got %v", err)
	}
}

// TestLeftoversWithoutRights: config/imports was not applied. Only that right is checked in the hub.
func TestLeftoversWithoutRights(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	h.orphan()
	clock := clocktesting.NewFakeClock(time.Now())
	h.r.clock, h.r.kinds, h.hub.denied = clock, newKinds(clock), createObjects
	mapper, live := h.r.mapper, h.r.live
	h.r.mapper, h.r.live = nil, nil
	if found, err := h.r.leftovers(t.Context()); !isProblem(err) {
		t.Errorf("want the problem that a right is missing, got %v, %v", found, err)
	}
	h.r.mapper, h.r.live = mapper, live

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := h.r.startLeftovers(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	importertest.Eventually(t, "a wait for the rights", func() (bool, string) { return clock.HasWaiters(), "" })
	h.hub.denied = "" // It is applied.
	clock.Step(workload.Resync)
	if req, _ := queue.Get(); req.NamespacedName != h.key {
		t.Errorf("want what %s left found once the rights are there, got %s", h.key, req)
	}
}

// TestLeftoversOfKindsWithoutRights: the roles of clouds without imports are left out. After any other error,
// the hub is queried again.
func TestLeftoversOfKindsWithoutRights(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	h.orphan()
	answer := apierrors.NewForbidden(schema.GroupResource{Resource: "vpcs"}, "", errors.New("no such right"))
	h.r.live = interceptor.NewClient(h.c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if list.GetObjectKind().GroupVersionKind().Kind == "VPC" {
				return answer
			}
			return c.List(ctx, list, opts...)
		},
	})
	h.leftovers(h.key)
	answer = apierrors.NewTooManyRequestsError("busy")
	if found, err := h.r.leftovers(t.Context()); !apierrors.IsTooManyRequests(err) {
		t.Errorf("want the error, so that the hub is queried again, got %v, %v", found, err)
	}
}
