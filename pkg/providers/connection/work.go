// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/pkg/providers/connection/allocation"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
	"github.com/masthead-dev/masthead/pkg/providers/connection/reason"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// versionInterval is how long a Kubernetes version is believed: control planes are upgraded without going away.
const versionInterval = 5 * time.Minute

// errBusy says that there is no room to talk to a cluster now. The enrolment is woken when there is.
var errBusy = errors.New("too many clusters are being talked to")

// enter asks for room to talk to a cluster; errBusy if there is none now.
func (p *Provider) enter(r *record, l allocation.Lane) (leave func(), err error) {
	leave, ok := p.admission.Enter(r.key, r.key.Namespace, l)
	r.waits[l] = !ok
	if !ok {
		return nil, errBusy
	}
	return leave, nil
}

// connect tries to make a connection, beside the one that serves if it is a shadow.
func (p *Provider) connect(ctx context.Context, r *record, shadow bool) (event, *reason.Failure, error) {
	leave, err := p.enter(r, allocation.AttemptLane(r.attempts))
	if err != nil {
		return "", nil, err
	}
	defer leave()
	if !shadow && r.attempts == 0 {
		p.view.publish(r) // The first attempt is visible; later ones are not, lest a dead cluster's state flaps.
	}
	r.attempted = r.enrolment
	r.retryNow.Store(false)

	ctx, cancel := context.WithTimeout(ctx, p.o.ConnectTimeout)
	defer cancel()
	version := r.enrolment.CredentialsVersion
	r.readVersion = version
	conn, why := p.dial(ctx, r)
	r.next = nil
	if why == nil {
		r.pending, r.credentialsVersion = conn, version
		return eventConnected, nil, nil
	}
	p.metrics.failed(r.name, why.Reason)
	switch {
	case shadow:
		p.view.announcer.kept(r.enrolment.Object, why)
		return eventConnectFailed, why, nil
	case why.Reason == ReasonDuplicateCluster, why.Reason == ReasonClusterIdentityChanged, why.Reason == ReasonHubItself,
		why.Reason == ReasonOtherHub:
		return eventRefused, why, nil
	default:
		return eventConnectFailed, why, nil
	}
}

// dial makes a connection: credentials, reachability, identity, arbitration, and only then what costs something.
func (p *Provider) dial(ctx context.Context, r *record) (conn *connected, why *reason.Failure) {
	creds := r.next
	if creds == nil {
		if creds, why = p.readCredentials(ctx, r); why != nil {
			return nil, why
		}
	}
	if used := creds.Fingerprint(); used != r.tried {
		r.tried, r.attempts = used, 0 // Earlier failures say nothing about these.
	}
	key := r.key
	t, err := transport.New(string(r.name), creds, p.o.Credentials, p.o.UserAgent, func() { p.records.wake(key) })
	if err != nil {
		return nil, reason.New(ReasonBadKubeconfig, fmt.Sprintf("The kubeconfig cannot be used: %s", err))
	}
	defer func() {
		if conn == nil { // Also after a panic.
			t.Close()
		}
	}()
	name, guarded := r.name, p.newGuard(ctx, r, t.SetPanicked)
	p.metrics.panicsOf(name) // That there was none is something to know, too.
	t.Serve(transport.Owner{
		Limits: p.o.Limits, Watches: p.metrics.watchesOf(name), Requests: p.metrics.requestsOf(name), Guard: guarded,
		Pacing: &transport.Pacing{
			Events: r.events, Answers: r.answers, Clock: clock.RealClock{}, Paused: p.metrics.pausesOf(name),
			Delayed: func(err error) { p.view.eventsDelayed(name, err) },
		},
		Refused: func(err error) { p.view.answerRefused(name, err) },
		Account: p.o.Budget.Account(r.enrolment.Class, string(name), func(err error) {
			// Whoever is refused may hold a lock of a store that subscribers read.
			guarded.Go("telling of a refusal", func() { p.view.answerRefused(name, err) })
		}),
	})
	return p.establish(ctx, r, creds, t)
}

func (p *Provider) establish(ctx context.Context, r *record, creds *credentials.Credentials, t *transport.Transport) (*connected, *reason.Failure) {
	pr := probe.New(t, p.o.ProbeTimeout)
	health, why := p.ask(ctx, pr, creds.Token())
	if why != nil {
		return nil, why
	}
	dials := t.Dials()
	uid, why := pr.Identity(ctx, creds.Token())
	if why != nil {
		return nil, why
	}
	if why := p.claim(ctx, r, uid); why != nil {
		return nil, why
	}
	if why := p.hubOf(ctx, r, pr, creds.Token()); why != nil {
		return nil, why
	}
	//nolint:contextcheck // The connection outlives the reconcile that makes it: its context is the provider's.
	conn, err := newConnected(p.ctx, r.name, creds, uid, t, r.throttle, log.FromContext(ctx).WithName("cluster"), p.share)
	if err != nil {
		return nil, reason.New(ReasonBadKubeconfig, fmt.Sprintf("The kubeconfig cannot be used: %s", err))
	}
	conn.verified = dials
	r.uid, r.health = uid, health
	r.version, r.versionAt = pr.Version(ctx, creds.Token()), p.o.Clock.Now()
	key, logger := r.key, log.FromContext(ctx)
	p.running.Go(func() {
		err := t.Guard().Run("the cache", conn.run)
		if conn.stoppedByItself() {
			logger.Error(err, "The cluster's cache stopped by itself")
			p.records.wake(key)
		}
	})
	return conn, nil
}

// ask probes and measures.
func (p *Provider) ask(ctx context.Context, pr probe.Prober, token string) (metav1.ConditionStatus, *reason.Failure) {
	start := p.o.Clock.Now()
	health, why := pr.Ready(ctx, token)
	p.metrics.duration.Observe(p.o.Clock.Since(start).Seconds())
	return health, why
}

// claim asks the arbiter for the cluster, and says why it may not be had. A holder that is only known from before the
// start is looked up in the hub first: its object may be gone since.
func (p *Provider) claim(ctx context.Context, r *record, uid string) *reason.Failure {
	identifier := r.enrolment.Identifier
	if identifier == "" {
		identifier = uid
	}
	for {
		ruling := p.arbiter.Claim(r.key, r.enrolment.Object.UID, uid, identifier)
		p.records.retry(ruling.Freed)
		switch ruling.Verdict {
		case allocation.VerdictGranted:
			r.identifier = identifier
			return nil
		case allocation.VerdictHub:
			return reason.New(ReasonHubItself, "The kubeconfig leads to the hub itself, which cannot be a workload cluster")
		case allocation.VerdictIdentityChanged:
			return reason.New(ReasonClusterIdentityChanged, fmt.Sprintf(
				"The kubeconfig leads to a cluster with the UID %q, and led to another one before; un-enrol and enrol it again if that is intended", uid))
		case allocation.VerdictDuplicate:
		}
		if ruling.Pinned && !p.stillEnrolled(ctx, ruling.Holder, r.key) {
			continue
		}
		if ruling.SameCluster {
			return reason.New(ReasonDuplicateCluster, fmt.Sprintf("The same cluster is already enrolled as %q", ruling.Holder))
		}
		return reason.New(ReasonDuplicateCluster, fmt.Sprintf("The cluster identifier %q belongs to %q", identifier, ruling.Holder))
	}
}

// stillEnrolled looks up the holder of a claim from before the start, and confirms or releases the claim. When the hub
// cannot be read, the holder keeps it. The one who asks claims again; others that were refused are tried again.
func (p *Provider) stillEnrolled(ctx context.Context, holder, asks Key) bool {
	e, err := p.sources[holder.Source].Describe(ctx, types.NamespacedName{Namespace: holder.Namespace, Name: holder.Name})
	if err != nil {
		return true
	}
	c, ok := p.arbiter.Held(holder)
	if ok && e != nil && (c.ObjectUID == "" || c.ObjectUID == e.Object.UID) {
		p.arbiter.Confirm(holder)
		return true
	}
	p.records.retry(slices.DeleteFunc(p.arbiter.Release(holder), func(k Key) bool { return k == asks }))
	return false
}

// readCredentials reads the Secret from the hub's API server.
func (p *Provider) readCredentials(ctx context.Context, r *record) (*credentials.Credentials, *reason.Failure) {
	ctx, cancel := context.WithTimeout(ctx, p.o.RequestTimeout)
	defer cancel()
	raw, err := p.sources[r.key.Source].Kubeconfig(ctx, &r.enrolment)
	var invalid *credentials.InvalidError
	switch {
	case errors.Is(err, ErrNoCredentials):
		return nil, reason.New(ReasonNoCredentials, "There is no Secret with the cluster's kubeconfig")
	case errors.As(err, &invalid):
		return nil, reason.New(ReasonBadKubeconfig, invalid.Message)
	case err != nil:
		log.FromContext(ctx).Error(err, "Cannot read the kubeconfig")
		return nil, reason.New(ReasonNoCredentials, "The Secret with the cluster's kubeconfig cannot be read from the hub")
	}
	creds, err := credentials.Parse(raw.Data, p.o.Credentials)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == credentials.ReasonDenied:
		return nil, reason.New(ReasonEndpointDenied, invalid.Message)
	case err != nil:
		return nil, reason.New(ReasonBadKubeconfig, err.Error())
	}
	r.readFrom = raw.SecretKey
	return creds, nil
}

// checkCredentials looks at a Secret that has changed.
func (p *Provider) checkCredentials(ctx context.Context, r *record) (event, *reason.Failure, error) {
	version := r.enrolment.CredentialsVersion
	r.readVersion = version
	creds, why := p.readCredentials(ctx, r)
	switch {
	case r.conn == nil:
		p.checkUntried(r, creds, why)
		return "", nil, nil
	case r.state == StateDraining:
		return p.checkDraining(r, creds, version), nil, nil
	case why != nil && why.Reason != ReasonBadKubeconfig:
		p.metrics.failed(r.name, why.Reason)
		return eventConnectFailed, why, nil
	case why != nil:
		p.metrics.failed(r.name, why.Reason)
		r.credentialsVersion = version // It stays bad until it changes.
		p.view.announcer.kept(r.enrolment.Object, why)
		return "", nil, nil
	}
	change := credentials.Compare(r.conn.creds, creds)
	if change == credentials.Unchanged {
		r.credentialsVersion = version
		p.schedule(r, actionResetRetry) // Should other credentials have failed meanwhile.
		return "", nil, nil
	}
	if used := creds.Fingerprint(); used != r.tried {
		r.tried = used
		p.schedule(r, actionResetRetry)
	} else if p.o.Clock.Now().Before(r.retryAt) {
		return "", nil, nil // The Secret was touched, and holds what did not work a moment ago.
	}
	if change == credentials.TokenChanged {
		return p.tryToken(ctx, r, creds, version)
	}
	r.next, r.cause = creds, credentials.Cause(r.conn.creds, creds)
	return eventEndpointChanged, nil, nil
}

// checkUntried ends the back-off if the Secret holds other credentials than those that did not work. That it was
// touched says nothing.
func (p *Provider) checkUntried(r *record, creds *credentials.Credentials, why *reason.Failure) {
	switch {
	case why == nil && creds.Fingerprint() != r.tried:
		r.attempts = 0
		r.retryNow.Store(true)
	case why != nil && why.Reason == ReasonBadKubeconfig:
		r.reason, r.message = why.Reason, why.Message
	}
}

// checkDraining has the rest of a drain use a token that was rotated, or is not accepted any more. Anything else would
// need a new connection, for which it is too late.
func (p *Provider) checkDraining(r *record, creds *credentials.Credentials, version string) event {
	r.probedAt = p.o.Clock.Now()
	r.conn.transport.Trust()
	if creds == nil || credentials.Compare(r.conn.creds, creds) != credentials.TokenChanged {
		return ""
	}
	r.next, r.credentialsVersion = creds, version
	return eventTokenChanged
}

// tryToken has a new token used unless the API server says that it does not accept it: then the old one, which may
// still be good, is kept and the new one tried again later.
func (p *Provider) tryToken(ctx context.Context, r *record, creds *credentials.Credentials, version string) (event, *reason.Failure, error) {
	if r.state == StateConnected {
		leave, err := p.enter(r, allocation.ProbeLane(r.probeFailures))
		if err != nil {
			return "", nil, err
		}
		_, why := p.ask(ctx, r.conn.prober, creds.Token())
		leave()
		if why != nil && why.Reason == ReasonUnauthorized {
			p.metrics.failed(r.name, why.Reason)
			if r.attempts == 0 {
				p.view.announcer.kept(r.enrolment.Object, why)
			}
			return eventConnectFailed, why, nil
		}
	}
	r.next, r.credentialsVersion = creds, version
	p.schedule(r, actionResetRetry)
	return eventTokenChanged, nil, nil
}

// probe asks the API server how it is.
func (p *Provider) probe(ctx context.Context, r *record) (event, *reason.Failure, error) {
	leave, err := p.enter(r, allocation.ProbeLane(r.probeFailures))
	if err != nil {
		return "", nil, err
	}
	defer leave()
	r.probedAt = p.o.Clock.Now()
	r.conn.transport.Trust()

	health, why := p.ask(ctx, r.conn.prober, r.conn.creds.Token())
	if why != nil && why.Reason == ReasonUnauthorized {
		ev, why := p.reauthorize(ctx, r, why)
		return ev, why, nil
	}
	if why == nil {
		why = p.identify(ctx, r)
	}
	if why == nil {
		why = p.verifyHub(ctx, r)
	}
	switch {
	case why != nil && endsConnection(why.Reason):
		return eventLost, why, nil
	case why != nil:
		ev, why := p.probeFailed(r, why)
		return ev, why, nil
	}
	if r.state == StateDegraded || r.probedAt.Sub(r.versionAt) >= versionInterval {
		if v := r.conn.prober.Version(ctx, r.conn.creds.Token()); v != "" {
			r.version = v
		}
		r.versionAt = r.probedAt
	}
	r.probeFailures, r.health = 0, health
	p.view.forgetRefusal(r.name, r.probedAt)
	r.unsynced = r.conn.progress.Unsynced(unsyncedAfter)
	return eventProbeSucceeded, nil, nil
}

// identify makes sure that it is the same cluster that answers, before anything is written to it: when it was away, and
// when there are new TCP connections to it, which a name or a load balancer may have led elsewhere.
func (p *Provider) identify(ctx context.Context, r *record) *reason.Failure {
	dials := r.conn.transport.Dials()
	if r.state != StateDegraded && dials == r.conn.verified {
		return nil
	}
	uid, why := r.conn.prober.Identity(ctx, r.conn.creds.Token())
	switch {
	case why != nil:
		return why
	case uid != r.uid:
		return reason.New(ReasonClusterIdentityChanged, "Another cluster answers at the same address")
	}
	r.conn.verified = dials
	return nil
}

// endsConnection is whether what a probe found out ends the connection at once: the cluster answered, and is not to be
// written to.
func endsConnection(reason string) bool {
	return reason == ReasonClusterIdentityChanged || reason == ReasonOtherHub || reason == ReasonForbidden
}

func (p *Provider) probeFailed(r *record, why *reason.Failure) (event, *reason.Failure) {
	p.metrics.failed(r.name, why.Reason)
	r.probeFailures++
	r.health = metav1.ConditionUnknown
	if r.probeFailures >= p.o.ProbeFailureThreshold {
		return eventLost, why
	}
	return eventProbeFailed, why
}

// reauthorize reads the Secret when the API server does not accept the credentials: most likely they were rotated a
// moment ago. If the Secret holds nothing new, or cannot be read, the probe has failed like any other: authenticators
// fail for a moment, too.
func (p *Provider) reauthorize(ctx context.Context, r *record, unauthorized *reason.Failure) (event, *reason.Failure) {
	version := r.enrolment.CredentialsVersion
	if creds, why := p.readCredentials(ctx, r); why == nil {
		switch credentials.Compare(r.conn.creds, creds) {
		case credentials.TokenChanged:
			r.next, r.credentialsVersion, r.readVersion = creds, version, version
			return eventTokenChanged, nil
		case credentials.Replaced:
			r.credentialsVersion, r.readVersion = "", "" // A new connection is made next, beside this one.
		case credentials.Unchanged:
		}
	}
	return p.probeFailed(r, unauthorized)
}
