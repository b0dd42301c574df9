// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// connector makes connections.
type connector struct {
	o          *Options
	contact    *dialer
	identities *identities
	marker     *hubMarker
	view       *view
	records    *records
	metrics    *metrics
	panics     *panics
	life       *lifetime
	share      connectionOptions // set by Start, before the first reconcile
}

// connect tries to make a connection; a shadow is made beside the active one.
func (c *connector) connect(ctx context.Context, r *record, shadow bool) (lifecycle.Event, *condition.Error, error) {
	leave, err := c.contact.enter(r, r.attemptLane(shadow))
	if err != nil {
		return "", nil, err
	}
	defer func() { leave() }()
	if !shadow && r.attempts == 0 {
		c.view.publish(r) // Only the first attempt is visible, so that a dead cluster's state does not flap.
	}
	r.attempted = r.enrolment
	r.retryNow.Store(false)

	ctx, cancel := context.WithTimeout(ctx, c.o.ConnectTimeout)
	defer cancel()
	version := r.enrolment.CredentialsVersion
	r.readVersion = version
	conn, why := c.dial(ctx, r)
	r.next = nil
	if why == nil {
		if shadow {
			conn.replaced, leave = leave, func() {}
		}
		r.pending, r.credentialsVersion = conn, version
		return lifecycle.EventConnected, nil, nil
	}
	c.metrics.failed(r.name, why.Reason)
	switch {
	case shadow:
		c.view.announcer.kept(r.enrolment.Object, why)
		return lifecycle.EventConnectFailed, why, nil
	case why.Reason == fleetv1alpha1.ReasonDuplicateCluster, why.Reason == fleetv1alpha1.ReasonClusterIdentityChanged, why.Reason == fleetv1alpha1.ReasonHubItself,
		why.Reason == fleetv1alpha1.ReasonOtherHub:
		return lifecycle.EventRefused, why, nil
	default:
		return lifecycle.EventConnectFailed, why, nil
	}
}

// dial makes a connection: credentials, reachability, identity, arbitration, and only then anything expensive.
func (c *connector) dial(ctx context.Context, r *record) (conn *connected, why *condition.Error) {
	creds := r.next
	if creds == nil {
		if creds, why = c.contact.readCredentials(ctx, r); why != nil {
			return nil, why
		}
	}
	if used := creds.Fingerprint(); used != r.tried {
		r.tried = used
		if !r.leaving { // Which ends after some attempts, with any credentials.
			r.attempts = 0 // Earlier failures say nothing about these.
		}
	}
	key := r.key
	t, err := transport.New(string(r.name), creds, c.o.Credentials, c.o.UserAgent, func() { c.records.wake(key) })
	if err != nil {
		return nil, condition.NewError(fleetv1alpha1.ReasonBadKubeconfig, fmt.Sprintf("The kubeconfig cannot be used: %s", err))
	}
	defer func() {
		if conn == nil { // Also after a panic.
			t.Close()
		}
	}()
	name, guarded := r.name, c.panics.guard(ctx, r, t.SetPanicked)
	c.metrics.panicCounter(name) // Create the series at zero.
	t.Serve(transport.Owner{
		Wrap: c.o.WrapTransport, Limits: c.o.Limits, Watches: c.metrics.watchCounter(name), Requests: c.metrics.requestCounts(name), Guard: guarded,
		Pacing: &transport.Pacing{
			Events: r.events, Answers: r.answers, Clock: clock.RealClock{}, Paused: c.metrics.pauseCounter(name),
			Delayed: func(err error) { c.view.eventsDelayed(name, err) },
		},
		Refused: func(err error) { c.view.answerRefused(name, err) },
		Account: c.o.Budget.Account(r.enrolment.Class, string(name), func(err error) {
			// The refused caller may hold a lock of a store that subscribers read.
			guarded.Go("reporting a refusal", func() { c.view.answerRefused(name, err) })
		}),
	})
	return c.establish(ctx, r, creds, t)
}

func (c *connector) establish(ctx context.Context, r *record, creds *credentials.Credentials, t *transport.Transport) (*connected, *condition.Error) {
	pr := probe.New(t, c.o.ProbeTimeout)
	health, why := c.contact.probe(ctx, pr, creds.Token())
	if why != nil {
		return nil, why
	}
	dials := t.Dials()
	uid, why := pr.Identity(ctx, creds.Token())
	if why != nil {
		return nil, why
	}
	if why := c.identities.claim(ctx, r, uid); why != nil {
		return nil, why
	}
	if why := c.marker.begin(ctx, r, pr, creds.Token()); why != nil {
		return nil, why
	}
	//nolint:contextcheck // The connection outlives the reconcile that makes it: its context is the provider's.
	conn, err := newConnected(
		c.life.ctx, r.name, creds, uid, t, r.throttle, c.metrics.dropCounter(r.name), log.FromContext(ctx).WithName("cluster"), c.share)
	if err != nil {
		return nil, condition.NewError(fleetv1alpha1.ReasonBadKubeconfig, fmt.Sprintf("The kubeconfig cannot be used: %s", err))
	}
	conn.verified = dials
	r.uid, r.health = uid, health
	r.version, r.versionAt = pr.Version(ctx, creds.Token()), c.o.Clock.Now()
	return conn, nil
}
