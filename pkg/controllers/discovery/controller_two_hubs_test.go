// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/discoverytest"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// TestTwoHubsOnOneClusterDoNotFight connects a second hub to a cluster although the marker, which the connection
// honours, says that it belongs to the first. Then the second takes the cluster over.
func TestTwoHubsOnOneClusterDoNotFight(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	composition := f.CreateComposition("aws", "mysqlinstances")
	copied := f.WaitForCopy(composition, discoverytest.SameContent(composition))
	f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
	f.WaitForIdle()
	written := f.Traffic.Writes()

	other := prepareOn(t, f.lane)
	other.Owner, other.othersPolicy = hubidentity.Owner{ID: "hub-b"}, true
	other.start()
	other.CreateComposition("gcp", "mysqlinstances")
	other.reported(discoverytest.XRDCRD, fleetv1alpha1.ReasonDefinitionForeign)
	other.gaugeIs(0, "masthead_discovery_protected", string(other.Cluster))
	other.WaitForIdle()
	f.WaitForIdle()
	if first, second := f.Traffic.Writes()-written, other.Traffic.Writes(); first != 0 || second != 1 {
		t.Errorf("want no write but the request for the username, got %d of the first and %d of the second: %v", first, second, other.Traffic.Last(20))
	}
	now := discoverytest.NewObject(discoverytest.CompositionKind, copied.GetName())
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(now), now); err != nil || now.GetResourceVersion() != copied.GetResourceVersion() {
		t.Errorf("want the first hub's copy left alone, got %v (%v)", now, err)
	}

	f.stop()
	other.othersPolicy = false
	other.Owner.Predecessors = []hubidentity.Identity{discoverytest.Owner.ID}
	c, _ := other.fleet.Lookup(other.Cluster)
	c.Hub = other.Owner
	other.fleet.Set(c)
	if w, ok := other.reconciler.workloads.Get(other.Cluster); ok {
		w.enqueue()
	}
	other.Within("the second hub takes over what the first put there", func() error {
		crd, err := f.GetCRD(f.Workload, discoverytest.XRDCRD)
		if err != nil || !other.Owner.IsStamped(crd) {
			return fmt.Errorf("the definition is not the second's: %w", errors.Join(err, errors.New("labels")))
		}
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		if err := f.Workload.Get(f.Ctx, client.ObjectKey{Name: policyName}, policy); err != nil || !other.Owner.IsStamped(policy) {
			return fmt.Errorf("the policy is not the second's: %w", errors.Join(err, errors.New("labels")))
		}
		return nil
	})
	other.WaitForGone(composition)
	other.gaugeIs(1, "masthead_discovery_protected", string(other.Cluster))
}

// TestUserThatAnotherControllerDoubtsIsRequested has another controller that is refused by the policy, after Masthead's
// username in the cluster has changed.
func TestUserThatAnotherControllerDoubtsIsRequested(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	composition := f.CreateComposition("aws", "mysqlinstances")
	f.WaitForCopy(composition, discoverytest.SameContent(composition))
	f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
	f.WaitForIdle()
	f.Traffic.SetUser("another-user")
	claims := f.NewClaimCRD("claims", discoverytest.Owner.Stamp(nil))
	var refused error
	f.Within("the policy refuses what another user than Masthead writes", func() error {
		if refused = f.Workload.Create(f.Ctx, claims, client.DryRunAll); refused == nil {
			return errors.New("it does not")
		}
		return nil
	})
	if !f.users.Excuses(f.Cluster, refused, time.Now()) {
		t.Errorf("want a refusal by the policy to be excused, got %v", refused)
	}
	f.Within("the policy lets the new user through", func() error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(policyKind.GroupVersionKind)
		if err := f.Workload.Get(f.Ctx, client.ObjectKey{Name: policyName}, u); err != nil {
			return err
		}
		if !strings.Contains(fmt.Sprint(u.Object["spec"]), "another-user") {
			// The refusal is reported again, as by controllers that retry their writes: right after the policy was
			// written, a refusal only causes a wait.
			f.users.Excuses(f.Cluster, refused, time.Now())
			return errors.New("it does not")
		}
		return nil
	})
}
