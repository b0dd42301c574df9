// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// checkCredentials reads a changed Secret.
func (c *checker) checkCredentials(ctx context.Context, r *record) (lifecycle.Event, *condition.Error, error) {
	version := r.enrolment.CredentialsVersion
	r.readVersion = version
	creds, why := c.contact.readCredentials(ctx, r)
	switch {
	case r.conn == nil:
		c.checkUntried(r, creds, why)
		return "", nil, nil
	case r.state == StateDraining:
		return c.checkDraining(r, creds, version), nil, nil
	case why != nil && why.Reason != fleetv1alpha1.ReasonBadKubeconfig:
		c.metrics.failed(r.name, why.Reason)
		return lifecycle.EventConnectFailed, why, nil
	case why != nil:
		c.metrics.failed(r.name, why.Reason)
		r.credentialsVersion = version // It stays bad until it changes.
		c.view.announcer.kept(r.enrolment.Object, why)
		return "", nil, nil
	}
	change := credentials.Compare(r.conn.creds, creds)
	if change == credentials.Unchanged {
		r.credentialsVersion = version
		c.schedule.set(r, lifecycle.ActionResetRetry) // In case other credentials failed meanwhile.
		return "", nil, nil
	}
	if used := creds.Fingerprint(); used != r.tried {
		r.tried = used
		c.schedule.set(r, lifecycle.ActionResetRetry)
	} else if c.o.Clock.Now().Before(r.retryAt) {
		return "", nil, nil // The Secret was touched, but holds the same failed credentials.
	}
	if change == credentials.TokenChanged {
		return c.tryToken(ctx, r, creds, version)
	}
	r.next, r.cause = creds, credentials.Cause(r.conn.creds, creds)
	return lifecycle.EventEndpointChanged, nil, nil
}

// checkUntried ends the back-off if the Secret's credentials differ from those that failed. Touching the Secret is not
// enough.
func (c *checker) checkUntried(r *record, creds *credentials.Credentials, why *condition.Error) {
	switch {
	case why == nil && creds.Fingerprint() != r.tried:
		r.attempts = 0
		r.retryNow.Store(true)
	case why != nil && why.Reason == fleetv1alpha1.ReasonBadKubeconfig:
		r.reason, r.message = why.Reason, why.Message
	}
}

// checkDraining makes the rest of a drain use the Secret's new token, if the old one was rotated or is no longer
// accepted. Any other change would need a new connection, for which it is too late.
func (c *checker) checkDraining(r *record, creds *credentials.Credentials, version string) lifecycle.Event {
	r.probedAt = c.o.Clock.Now()
	r.conn.transport.ClearUnauthorized()
	if creds == nil || credentials.Compare(r.conn.creds, creds) != credentials.TokenChanged {
		return ""
	}
	r.next, r.credentialsVersion = creds, version
	return lifecycle.EventTokenChanged
}

// tryToken switches to a new token unless the API server rejects it. Then it keeps the old one, which may still be
// valid, and retries the new one later.
func (c *checker) tryToken(ctx context.Context, r *record, creds *credentials.Credentials, version string) (lifecycle.Event, *condition.Error, error) {
	if r.state == StateConnected {
		leave, err := c.contact.enter(r, r.probeLane())
		if err != nil {
			return "", nil, err
		}
		_, why := c.contact.probe(ctx, r.conn.prober, creds.Token())
		leave()
		if why != nil && why.Reason == fleetv1alpha1.ReasonUnauthorized {
			c.metrics.failed(r.name, why.Reason)
			if r.attempts == 0 {
				c.view.announcer.kept(r.enrolment.Object, why)
			}
			return lifecycle.EventConnectFailed, why, nil
		}
	}
	r.next, r.credentialsVersion = creds, version
	c.schedule.set(r, lifecycle.ActionResetRetry)
	return lifecycle.EventTokenChanged, nil, nil
}
