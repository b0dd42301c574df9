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
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// TestTwoHubsOnOneClusterDoNotFight connects a second hub to a cluster although the marker, which the connection
// honours, says that it belongs to the first. Then the second takes the cluster over.
func TestTwoHubsOnOneClusterDoNotFight(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	composition := f.composition("aws", "mysqlinstances")
	copied := f.copy(composition, sameContent(composition))
	f.gaugeIs(1, "masthead_discovery_protected", string(f.cluster))
	f.settled()
	written := f.traffic.Writes()

	other := prepareOn(t, f.lane)
	other.owner, other.othersPolicy = hubidentity.Owner{ID: "hub-b"}, true
	other.start()
	other.composition("gcp", "mysqlinstances")
	other.reported(xrdCRD, fleetv1alpha1.ReasonDefinitionForeign)
	other.gaugeIs(0, "masthead_discovery_protected", string(other.cluster))
	other.settled()
	f.settled()
	if first, second := f.traffic.Writes()-written, other.traffic.Writes(); first != 0 || second != 1 {
		t.Errorf("want no write but the request for the username, got %d of the first and %d of the second: %v", first, second, other.traffic.Last(20))
	}
	now := object(compositionGVK, copied.GetName())
	if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(now), now); err != nil || now.GetResourceVersion() != copied.GetResourceVersion() {
		t.Errorf("want the first hub's copy left alone, got %v (%v)", now, err)
	}

	f.stop()
	other.othersPolicy = false
	other.owner.Predecessors = []hubidentity.Identity{owner.ID}
	c, _ := other.fleet.Lookup(other.cluster)
	c.Hub = other.owner
	other.fleet.Set(c)
	if w, ok := other.reconciler.workloads.Get(other.cluster); ok {
		w.enqueue()
	}
	other.Within("the second hub takes over what the first put there", func() error {
		crd, err := f.crd(f.workload, xrdCRD)
		if err != nil || !other.owner.IsStamped(crd) {
			return fmt.Errorf("the definition is not the second's: %w", errors.Join(err, errors.New("labels")))
		}
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		if err := f.workload.Get(f.Ctx, client.ObjectKey{Name: policyName}, policy); err != nil || !other.owner.IsStamped(policy) {
			return fmt.Errorf("the policy is not the second's: %w", errors.Join(err, errors.New("labels")))
		}
		return nil
	})
	other.gone(composition)
	other.gaugeIs(1, "masthead_discovery_protected", string(other.cluster))
}

// TestUserThatAnotherControllerDoubtsIsRequested has another controller that is refused by the policy, after Masthead's
// username in the cluster has changed.
func TestUserThatAnotherControllerDoubtsIsRequested(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	composition := f.composition("aws", "mysqlinstances")
	f.copy(composition, sameContent(composition))
	f.gaugeIs(1, "masthead_discovery_protected", string(f.cluster))
	f.settled()
	f.traffic.SetUser("another-user")
	claims := f.claimCRD("claims", owner.Stamp(nil))
	var refused error
	f.Within("the policy refuses what another user than Masthead writes", func() error {
		if refused = f.workload.Create(f.Ctx, claims, client.DryRunAll); refused == nil {
			return errors.New("it does not")
		}
		return nil
	})
	if !f.users.Excuses(f.cluster, refused, time.Now()) {
		t.Errorf("want a refusal by the policy to be excused, got %v", refused)
	}
	f.Within("the policy lets the new user through", func() error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(policyKind.GroupVersionKind)
		if err := f.workload.Get(f.Ctx, client.ObjectKey{Name: policyName}, u); err != nil {
			return err
		}
		if !strings.Contains(fmt.Sprint(u.Object["spec"]), "another-user") {
			// The refusal is reported again, as by controllers that retry their writes: right after the policy was
			// written, a refusal only causes a wait.
			f.users.Excuses(f.cluster, refused, time.Now())
			return errors.New("it does not")
		}
		return nil
	})
}
