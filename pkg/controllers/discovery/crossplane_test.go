// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/discoverytest"
)

const crossplanesFinalizer = "defined.apiextensions.crossplane.io"

func TestForeignFinalizer(t *testing.T) {
	cases := map[string]struct {
		reason     string
		finalizers []string
		want       string
	}{
		"None":       {"An object without finalizers is used by no other controller.", nil, ""},
		"Kubernetes": {"An API server puts these on what it deletes.", []string{"foregroundDeletion", "orphan"}, ""},
		"Crossplane": {"Who puts a finalizer on something works with it.", []string{"orphan", crossplanesFinalizer}, crossplanesFinalizer},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := discoverytest.NewObject(discoverytest.XRDKind, "x")
			u.SetFinalizers(tc.finalizers)
			if got := foreignFinalizer(u); got != tc.want {
				t.Errorf("%s Want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// withoutPolicies answers like an API server that serves no admission policies, so that anybody can overwrite the
// copies.
func withoutPolicies(req *http.Request) *http.Response {
	if strings.Contains(req.URL.Path, "/validatingadmissionpolic") {
		return controllertest.JSONAnswer(req, http.StatusNotFound, "404 page not found")
	}
	return nil
}

// finalize sets the finalizers of a copy, or removes them.
func (f *fixture) finalize(u *unstructured.Unstructured, finalizers ...string) {
	f.T.Helper()
	f.Edit(f.Workload, u, func() { u.SetFinalizers(finalizers) })
}

// releaseLater removes the finalizers of a copy when the test ends.
func (f *fixture) releaseLater(u *unstructured.Unstructured) {
	f.T.Cleanup(func() {
		now := discoverytest.NewObject(u.GroupVersionKind(), u.GetName())
		if f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(now), now) == nil {
			f.finalize(now)
		}
	})
}

// untouched checks that an object still exists and is not being deleted.
func (f *fixture) untouched(u *unstructured.Unstructured) {
	f.T.Helper()
	now := discoverytest.NewObject(u.GroupVersionKind(), u.GetName())
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(now), now); err != nil || now.GetUID() != u.GetUID() || now.GetDeletionTimestamp() != nil {
		f.T.Fatalf("want %s %q left as it is, got %v (%v)", u.GetKind(), u.GetName(), now.Object["metadata"], err)
	}
}

// TestCrossplaneThatWasInstalledOverTheCopies has a Crossplane that takes copies for its own, as it does where no
// policy is in force. When one of them is deleted, it deletes the claims.
func TestCrossplaneThatWasInstalledOverTheCopies(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.Traffic.SetAnswer(withoutPolicies)
	f.start()
	xrd, composition := f.CreateXRD("mysqlinstances"), f.CreateComposition("aws", "mysqlinstances")
	copied, copiedComposition := f.WaitForCopy(xrd, discoverytest.SameContent(xrd)), f.WaitForCopy(composition, nil)
	f.releaseLater(copied)
	f.finalize(copied, crossplanesFinalizer)
	f.reported(discoverytest.XRDCRD, fleetv1alpha1.ReasonOwnCrossplane)
	f.WaitForEvent(fleetv1alpha1.ReasonOwnCrossplane)

	t.Log("nothing is written or deleted there any more, also after a restart")
	f.WaitForIdle()
	written := f.Traffic.Writes()
	f.Delete(f.Hub, xrd)
	f.Delete(f.Hub, composition)
	other := f.CreateComposition("gcp", "mysqlinstances")
	f.restart()
	f.reported(discoverytest.XRDCRD, fleetv1alpha1.ReasonOwnCrossplane)
	f.WaitForIdle()
	f.WaitForGone(other)
	f.untouched(copied)
	f.untouched(copiedComposition)
	// One request asks for Masthead's username.
	if n := f.Traffic.Writes() - written; n > 1 {
		t.Errorf("want nothing written, got %d: %q", n, f.Traffic.Last(20))
	}

	t.Log("nor when it is not wanted any more")
	f.EditClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeNone })
	f.reported(discoverytest.XRDCRD, fleetv1alpha1.ReasonForeignObjectsLeft)
	f.reported(discoverytest.CompositionCRD, fleetv1alpha1.ReasonForeignObjectsLeft)
	f.WaitForIdle()
	f.untouched(copied)
	f.untouched(copiedComposition)

	t.Log("when the Crossplane is gone, everything goes")
	f.finalize(copied)
	f.reconciler.enqueueAll()
	f.WaitForGone(copied)
	f.WaitForGone(copiedComposition)
}

// TestDefinitionThatIsNotACopyIsACrossplanes creates a cluster's own CompositeResourceDefinition under Masthead's
// definition.
func TestDefinitionThatIsNotACopyIsACrossplanes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	xrd := f.CreateXRD("mysqlinstances")
	copied := f.WaitForCopy(xrd, nil)
	own := discoverytest.NewObject(discoverytest.XRDKind, "theirs."+f.Group)
	own.Object["spec"] = copied.DeepCopy().Object["spec"]
	_ = unstructured.SetNestedField(own.Object, "theirs", "spec", "names", "plural")
	f.Create(f.Workload, own)
	t.Cleanup(func() { f.Delete(f.Workload, own) })
	f.reported(discoverytest.XRDCRD, fleetv1alpha1.ReasonOwnCrossplane)
	composition := f.CreateComposition("aws", "mysqlinstances")
	f.WaitForIdle()
	f.WaitForGone(composition)
	f.untouched(copied)

	f.Delete(f.Workload, own)
	f.WaitForCopy(composition, nil)
	f.reported(discoverytest.XRDCRD, "Served")
}

// TestCopyWithForeignFinalizerStays deletes an object in the hub while its copy has a finalizer of another controller
// in the cluster.
func TestCopyWithForeignFinalizerStays(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.Traffic.SetAnswer(withoutPolicies)
	f.start()
	composition, other := f.CreateComposition("aws", "mysqlinstances"), f.CreateComposition("gcp", "mysqlinstances")
	copied := f.WaitForCopy(composition, nil)
	f.WaitForCopy(other, nil)
	f.releaseLater(copied)
	f.finalize(copied, "theirs.org/uses")
	f.Within("the finalizer is seen", func() error {
		w, _ := f.reconciler.workloads.Get(f.Cluster)
		for _, kind := range w.followedKinds() {
			have, err := w.watcher.Get(kind, client.ObjectKeyFromObject(copied))
			if err == nil && slices.Contains(have.GetFinalizers(), "theirs.org/uses") {
				return nil
			}
		}
		return errors.New("it is not")
	})
	f.Delete(f.Hub, composition)
	f.Delete(f.Hub, other)
	f.WaitForGone(other)
	f.reported(discoverytest.CompositionCRD, fleetv1alpha1.ReasonForeignObjectsLeft)
	f.untouched(copied)

	f.finalize(copied)
	f.WaitForGone(copied)
	f.reported(discoverytest.CompositionCRD, "Served")
	f.Within("the metric", func() error {
		if got := f.gauge("masthead_discovery_served", string(f.Cluster), discoverytest.CompositionCRD); got != 1 {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}
