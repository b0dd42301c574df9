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
			u := object(xrdGVK, "x")
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
		return answer(http.StatusNotFound, "404 page not found")
	}
	return nil
}

// finalize sets the finalizers of a copy, or removes them.
func (f *fixture) finalize(u *unstructured.Unstructured, finalizers ...string) {
	f.T.Helper()
	f.Edit(f.workload, u, func() { u.SetFinalizers(finalizers) })
}

// releaseLater removes the finalizers of a copy when the test ends.
func (f *fixture) releaseLater(u *unstructured.Unstructured) {
	f.T.Cleanup(func() {
		now := object(u.GroupVersionKind(), u.GetName())
		if f.workload.Get(f.Ctx, client.ObjectKeyFromObject(now), now) == nil {
			f.finalize(now)
		}
	})
}

// untouched checks that an object still exists and is not being deleted.
func (f *fixture) untouched(u *unstructured.Unstructured) {
	f.T.Helper()
	now := object(u.GroupVersionKind(), u.GetName())
	if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(now), now); err != nil || now.GetUID() != u.GetUID() || now.GetDeletionTimestamp() != nil {
		f.T.Fatalf("want %s %q left as it is, got %v (%v)", u.GetKind(), u.GetName(), now.Object["metadata"], err)
	}
}

// TestCrossplaneThatWasInstalledOverTheCopies has a Crossplane that takes copies for its own, as it does where no
// policy is in force. When one of them is deleted, it deletes the claims.
func TestCrossplaneThatWasInstalledOverTheCopies(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.traffic.SetAnswer(withoutPolicies)
	f.start()
	xrd, composition := f.xrd("mysqlinstances"), f.composition("aws", "mysqlinstances")
	copied, copiedComposition := f.copy(xrd, sameContent(xrd)), f.copy(composition, nil)
	f.releaseLater(copied)
	f.finalize(copied, crossplanesFinalizer)
	f.reported(xrdCRD, fleetv1alpha1.ReasonOwnCrossplane)
	f.event(fleetv1alpha1.ReasonOwnCrossplane)

	t.Log("nothing is written or deleted there any more, also after a restart")
	f.settled()
	written := f.traffic.Writes()
	f.Delete(f.hub, xrd)
	f.Delete(f.hub, composition)
	other := f.composition("gcp", "mysqlinstances")
	f.restart()
	f.reported(xrdCRD, fleetv1alpha1.ReasonOwnCrossplane)
	f.settled()
	f.gone(other)
	f.untouched(copied)
	f.untouched(copiedComposition)
	// One request asks for Masthead's username.
	if n := f.traffic.Writes() - written; n > 1 {
		t.Errorf("want nothing written, got %d: %q", n, f.traffic.Last(20))
	}

	t.Log("nor when it is not wanted any more")
	f.changeClass(func(agent *fleetv1alpha1.AgentSpec) { agent.Discovery = fleetv1alpha1.DiscoveryModeNone })
	f.reported(xrdCRD, fleetv1alpha1.ReasonForeignObjectsLeft)
	f.reported(compositionCRD, fleetv1alpha1.ReasonForeignObjectsLeft)
	f.settled()
	f.untouched(copied)
	f.untouched(copiedComposition)

	t.Log("when the Crossplane is gone, everything goes")
	f.finalize(copied)
	f.reconciler.enqueueAll()
	f.gone(copied)
	f.gone(copiedComposition)
}

// TestDefinitionThatIsNotACopyIsACrossplanes creates a cluster's own CompositeResourceDefinition under Masthead's
// definition.
func TestDefinitionThatIsNotACopyIsACrossplanes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	xrd := f.xrd("mysqlinstances")
	copied := f.copy(xrd, nil)
	own := object(xrdGVK, "theirs."+f.group)
	own.Object["spec"] = copied.DeepCopy().Object["spec"]
	_ = unstructured.SetNestedField(own.Object, "theirs", "spec", "names", "plural")
	f.Create(f.workload, own)
	t.Cleanup(func() { f.Delete(f.workload, own) })
	f.reported(xrdCRD, fleetv1alpha1.ReasonOwnCrossplane)
	composition := f.composition("aws", "mysqlinstances")
	f.settled()
	f.gone(composition)
	f.untouched(copied)

	f.Delete(f.workload, own)
	f.copy(composition, nil)
	f.reported(xrdCRD, "Served")
}

// TestCopyWithForeignFinalizerStays deletes an object in the hub while its copy has a finalizer of another controller
// in the cluster.
func TestCopyWithForeignFinalizerStays(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.traffic.SetAnswer(withoutPolicies)
	f.start()
	composition, other := f.composition("aws", "mysqlinstances"), f.composition("gcp", "mysqlinstances")
	copied := f.copy(composition, nil)
	f.copy(other, nil)
	f.releaseLater(copied)
	f.finalize(copied, "theirs.org/uses")
	f.Within("the finalizer is seen", func() error {
		w, _ := f.reconciler.workloads.Get(f.cluster)
		for _, kind := range w.followedKinds() {
			have, err := w.watcher.Get(kind, client.ObjectKeyFromObject(copied))
			if err == nil && slices.Contains(have.GetFinalizers(), "theirs.org/uses") {
				return nil
			}
		}
		return errors.New("it is not")
	})
	f.Delete(f.hub, composition)
	f.Delete(f.hub, other)
	f.gone(other)
	f.reported(compositionCRD, fleetv1alpha1.ReasonForeignObjectsLeft)
	f.untouched(copied)

	f.finalize(copied)
	f.gone(copied)
	f.reported(compositionCRD, "Served")
	f.Within("the metric", func() error {
		if got := f.gauge("masthead_discovery_served", string(f.cluster), compositionCRD); got != 1 {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}
