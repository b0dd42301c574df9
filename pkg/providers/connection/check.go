// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

const (
	// versionInterval is how long a Kubernetes version is cached: control planes are upgraded without an outage.
	versionInterval = 5 * time.Minute
	// probeTimeouts is how many times the ProbeTimeout a probe may take as a whole.
	probeTimeouts = 2
	// slowProbe is how long a probe takes at least whose successor is made with those of failed connections.
	slowProbe = time.Second
)

// checker probes the active connection, and checks whether its credentials are still those of its Secret.
type checker struct {
	o        *Options
	contact  *dialer
	marker   *hubMarker
	view     *view
	metrics  *metrics
	schedule schedule
}

// probe checks the API server's health.
func (c *checker) probe(ctx context.Context, r *record) (lifecycle.Event, *condition.Error, error) {
	leave, err := c.contact.enter(r, r.probeLane())
	if err != nil {
		return "", nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, probeTimeouts*c.o.ProbeTimeout)
	defer cancel()
	r.probedAt = c.o.Clock.Now()
	defer func() { r.slow = c.o.Clock.Since(r.probedAt) >= slowProbe }()
	r.conn.transport.ClearUnauthorized()

	health, why := c.contact.probe(ctx, r.conn.prober, r.conn.creds.Token())
	if why != nil && why.Reason == fleetv1alpha1.ReasonUnauthorized {
		ev, why := c.reauthorize(ctx, r, why)
		return ev, why, nil
	}
	if why == nil {
		why = c.identify(ctx, r)
	}
	if why == nil {
		why = c.marker.verify(ctx, r)
	}
	switch {
	case why != nil && endsConnection(why.Reason):
		return lifecycle.EventLost, why, nil
	case why != nil:
		ev, why := c.probeFailed(r, why)
		return ev, why, nil
	}
	if r.state == StateDegraded || r.probedAt.Sub(r.versionAt) >= versionInterval {
		if v := r.conn.prober.Version(ctx, r.conn.creds.Token()); v != "" {
			r.version = v
		}
		r.versionAt = r.probedAt
	}
	r.probeFailures, r.health = 0, health
	c.view.forgetRefusal(r.name, r.probedAt)
	r.unsynced = r.conn.progress.Unsynced(c.o.UnsyncedAfter)
	return lifecycle.EventProbeSucceeded, nil, nil
}

// identify verifies that the same cluster responds before anything is written to it: after an outage, and after new TCP
// connections, which DNS or a load balancer may have routed elsewhere.
func (c *checker) identify(ctx context.Context, r *record) *condition.Error {
	dials := r.conn.transport.Dials()
	if r.state != StateDegraded && dials == r.conn.verified {
		return nil
	}
	uid, why := r.conn.prober.Identity(ctx, r.conn.creds.Token())
	switch {
	case why != nil:
		return why
	case uid != r.uid:
		return condition.NewError(fleetv1alpha1.ReasonClusterIdentityChanged, "Another cluster answers at the same address")
	}
	r.conn.verified = dials
	return nil
}

// endsConnection reports whether a probe's result ends the connection at once: the cluster is another one, or another
// hub's. A 403 does not: an API server answers it while it starts, until it has read its roles.
func endsConnection(reason string) bool {
	return reason == fleetv1alpha1.ReasonClusterIdentityChanged || reason == fleetv1alpha1.ReasonOtherHub
}

func (c *checker) probeFailed(r *record, why *condition.Error) (lifecycle.Event, *condition.Error) {
	c.metrics.failed(r.name, why.Reason)
	r.probeFailures++
	r.health = metav1.ConditionUnknown
	if r.probeFailures >= c.o.ProbeFailureThreshold {
		return lifecycle.EventLost, why
	}
	return lifecycle.EventProbeFailed, why
}

// reauthorize reads the Secret when the API server rejects the credentials: most likely they were just rotated. If the
// Secret has no new ones or cannot be read, this is an ordinary failed probe: authenticators have transient failures,
// too.
func (c *checker) reauthorize(ctx context.Context, r *record, unauthorized *condition.Error) (lifecycle.Event, *condition.Error) {
	version := r.enrolment.CredentialsVersion
	if creds, why := c.contact.readCredentials(ctx, r); why == nil {
		switch credentials.Compare(r.conn.creds, creds) {
		case credentials.TokenChanged:
			r.next, r.credentialsVersion, r.readVersion = creds, version, version
			return lifecycle.EventTokenChanged, nil
		case credentials.Replaced:
			r.credentialsVersion, r.readVersion = "", "" // A new connection is made next, beside this one.
		case credentials.Unchanged:
		}
	}
	return c.probeFailed(r, unauthorized)
}
