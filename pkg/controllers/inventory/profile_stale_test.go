// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// TestStatusIsNotWrittenOverANewerOne publishes a status that follows from a profile that is still in the cache,
// although a newer one was written.
func TestStatusIsNotWrittenOverANewerOne(t *testing.T) {
	fleet := newFakeFleet()
	h := startHub(t, fleet, nil)
	fleet.set(h.cluster("w1"))
	eventually(t, "the profile of a connected cluster", func() bool {
		return connectedReason(h.profile(t, "capi-w1")) == fleetv1alpha1.ReasonConnected
	})
	stale := h.profile(t, "capi-w1")
	lost := h.cluster("w1", func(c *connection.Cluster) {
		c.State, c.Reason, c.Message = connection.StateBackoff, fleetv1alpha1.ReasonDialError, "The API server does not answer"
	})
	fleet.set(lost)
	eventually(t, "the lost connection", func() bool {
		return connectedReason(h.profile(t, "capi-w1")) == fleetv1alpha1.ReasonDialError
	})

	before := h.profile(t, "capi-w1")
	key, _ := connection.ParseClusterName(lost.Name)
	r := &reconciler{hub: h.Client, definitions: &Definitions{}, clock: clocktesting.NewFakeClock(time.Now().Add(time.Hour))}
	if err := r.publish(t.Context(), &scope{name: lost.Name, key: key, profile: stale, cluster: lost}); !apierrors.IsConflict(err) {
		t.Errorf("want a conflict, which is tried again with what there is now, got %v", err)
	}
	if now := h.profile(t, "capi-w1"); now.ResourceVersion != before.ResourceVersion {
		t.Errorf("want nothing to be written, %s became %s", before.ResourceVersion, now.ResourceVersion)
	}
}
