// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
)

// A workload cluster belongs to one hub, which is named by a marker in the cluster; see package hubidentity. The marker
// is claimed before a cluster is engaged if its class writes there, otherwise before the first write. Until then the
// transport blocks writes. The marker is checked every Options.HubInterval, and when a cluster recovers.

// maxClaimAttempts is how often claiming is tried when the marker changes concurrently.
const maxClaimAttempts = 3

// hubMarker claims workload clusters for this hub, and releases them.
type hubMarker struct {
	o       *Options
	classes *classRules
}

// ensure checks whether a cluster belongs to this hub, and claims it if requested and free. It returns whether the
// cluster is held, or why it cannot be.
func (c *hubMarker) ensure(ctx context.Context, r *record, pr probe.Prober, token string, claim bool) (bool, *condition.Error) {
	takeOver, err := hubidentity.Parse(r.enrolment.TakeOverFrom)
	if err != nil {
		takeOver = "" // No hub has that identity.
	}
	for range maxClaimAttempts {
		have, why := pr.Marker(ctx, token)
		if why != nil {
			return false, why
		}
		verdict, want := hubidentity.Judge(markerIn(have), c.o.Hub, takeOver)
		switch verdict {
		case hubidentity.VerdictHeld:
			r.hub = want.Owner()
			return true, nil
		case hubidentity.VerdictOther:
			return false, otherHub(hubidentity.GetMarker(have))
		case hubidentity.VerdictFree:
		}
		if !claim {
			r.hub = hubidentity.Owner{ID: c.o.Hub.ID}
			return false, nil
		}
		written, why := pr.WriteMarker(ctx, token, want, have)
		if why != nil {
			return false, why
		}
		if written {
			r.hub = want.Owner()
			return true, nil
		}
	}
	return false, condition.NewError(fleetv1alpha1.ReasonProbeFailed, "Other hubs claim the cluster at the same time")
}

func markerIn(have *metav1.ObjectMeta) *hubidentity.Marker {
	if have == nil {
		return nil
	}
	m := hubidentity.GetMarker(have)
	return &m
}

// otherHub returns the failure for a cluster that belongs to another hub.
func otherHub(m hubidentity.Marker) *condition.Error {
	if m.Foreign {
		return condition.NewError(fleetv1alpha1.ReasonOtherHub, fmt.Sprintf(
			"The cluster belongs to another hub, whose identity in the label %s of the CustomResourceDefinition %q cannot be read",
			fleetv1alpha1.HubLabel, fleetv1alpha1.HubMarkerName))
	}
	return condition.NewError(fleetv1alpha1.ReasonOtherHub, fmt.Sprintf(
		"The cluster belongs to the hub %s. It is connected when that hub releases it, or when the annotation %s of the enrolled object has the value %q",
		m.Holder, fleetv1alpha1.TakeOverFromAnnotation, m.Holder.ID))
}

// begin checks for a new connection whether the cluster belongs to this hub, and blocks writes if it does not.
func (c *hubMarker) begin(ctx context.Context, r *record, pr probe.Prober, token string) *condition.Error {
	if c.o.Hub.ID == "" {
		return nil
	}
	writes, err := c.classes.writes(ctx, r.enrolment.Class)
	if err != nil {
		return condition.NewError(fleetv1alpha1.ReasonConnecting, "The EnrollmentClass cannot be read from the hub")
	}
	held, why := c.ensure(ctx, r, pr, token, writes && !r.unenrolled)
	r.hubAt = c.o.Clock.Now()
	if why != nil && (writes || noAnswer(why)) {
		return why
	}
	pr.Transport().HoldWrites(!held)
	return nil
}

// noAnswer reports whether a failure leaves open whether this hub may claim the cluster.
func noAnswer(why *condition.Error) bool {
	return why.Reason != fleetv1alpha1.ReasonOtherHub && why.Reason != fleetv1alpha1.ReasonForbidden
}

// verify checks whether a connected cluster still belongs to this hub.
func (c *hubMarker) verify(ctx context.Context, r *record) *condition.Error {
	if c.o.Hub.ID == "" {
		return nil
	}
	t := r.conn.transport
	held, wanted := !t.Unclaimed(), t.TakeClaimWanted()
	writes, err := c.classes.writes(ctx, r.enrolment.Class)
	claim := held || wanted || writes || err != nil
	due := r.state == StateDegraded || wanted || !held && writes || c.o.Clock.Since(r.hubAt) >= c.o.HubInterval
	if !due {
		return nil
	}
	r.hubAt = c.o.Clock.Now()
	now, why := c.ensure(ctx, r, r.conn.prober, r.conn.creds.Token(), claim)
	if why != nil && noAnswer(why) {
		return why
	}
	t.HoldWrites(!now)
	if why != nil && (held || writes) {
		return why
	}
	return nil
}

// release releases a cluster that leaves, so that another hub can claim it.
func (c *hubMarker) release(ctx context.Context, conn *connected, token string) *condition.Error {
	if c.o.Hub.ID == "" || conn.transport.Unclaimed() {
		return nil
	}
	conn.transport.HoldWrites(true)
	for range maxClaimAttempts {
		have, why := conn.prober.Marker(ctx, token)
		if why != nil || have == nil {
			return why
		}
		m := hubidentity.GetMarker(have)
		if m.Holder.ID != c.o.Hub.ID {
			return nil
		}
		written, why := conn.prober.WriteMarker(ctx, token, hubidentity.ReleasedMarker(m), have)
		if why != nil || written {
			return why
		}
	}
	return condition.NewError(fleetv1alpha1.ReasonProbeFailed, "Another client changes the marker of the hub at the same time")
}
