// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// record is the state of one enrolment. Only the worker that holds its key accesses it, and a work queue hands a key to
// one worker at a time; fields that others access are atomic and marked. Readers see a snapshot that the worker
// publishes.
type record struct {
	key      Key
	name     mcr.ClusterName
	throttle *transport.Throttle
	// events and answers limit how much of the cluster is read.
	events, answers *transport.RateLimiter
	// class is the enrolment's class at the last Describe. The lock of records guards it, because watches read it.
	class string

	enrolment Enrolment
	// unenrolled reports whether the source no longer enrols this object.
	unenrolled bool
	// leaving means that it must be connected to be offboarded.
	leaving         bool
	state           State
	reason, message string
	health          metav1.ConditionStatus
	version         string
	uid             string
	// identifier is the last granted identifier, not that requested by a changed enrolment.
	identifier string
	// unsynced are the kinds that were not synced when the cluster was last probed.
	unsynced []kindwatch.Unsynced

	// hub is this hub as owner of objects in the cluster, and hubAt when the marker was last checked.
	hub   hubidentity.Owner
	hubAt time.Time

	// held is why the cluster must not be connected, with its start, and whether it takes effect at once.
	held       *condition.Error
	heldAtOnce bool
	heldSince  time.Time
	// heldShown is the reason in the metrics.
	heldShown string
	// conflict is set while another enrolment holds the requested identifier.
	conflict *condition.Error

	conn *connected // set while engaged
	// pending is a connection that is not engaged yet.
	pending *connected
	// credentialsVersion is the version of the Secret that was last processed: used, or found unusable. readVersion is the
	// one last read.
	credentialsVersion, readVersion string
	// tried are the credentials of the last attempt to use any.
	tried credentials.Fingerprint
	// readFrom is where credentials were last read.
	readFrom SecretKey
	// next are credentials that were read and will be used next.
	next *credentials.Credentials
	// recorded is the reason that the hub recorded before this process started, until the first announcement.
	recorded string
	// logged is the state and the reason last logged at the level info.
	logged string
	// cause says why the next connection is made, for a metric.
	cause string

	// failures in a row: of attempts to connect, or to replace the connection; of probes.
	attempts, probeFailures int
	// slow means that the last probe took long.
	slow                bool
	retryAt, probeAt    time.Time
	probedAt, versionAt time.Time
	// settleAt is when the connection will have lasted long enough to reset attempts.
	settleAt time.Time
	// attempted is the enrolment at the last attempt: if it now differs in more than its Secret's version, retry at once.
	attempted Enrolment

	drain *drain

	// waits are the lanes in which the current or last reconcile found no place.
	waits [laneCount]bool

	// retryNow is set by others when the reason for a refusal is gone.
	retryNow atomic.Bool
}

// drain is a drain in progress.
type drain struct {
	cancel context.CancelFunc
	done   atomic.Bool // set by the goroutine that waits
}

// observe gathers the input of Decide.
func (r *record) observe(e *Enrolment, now time.Time, grace time.Duration) lifecycle.Observation {
	o := lifecycle.Observation{
		Now: now, State: r.state, Grace: grace,
		Enrolled:   e != nil,
		SameObject: e != nil && e.Object.UID == r.enrolment.Object.UID,
		Leaving:    r.leaving && r.attempts < offboardAttempts,
		HeldAtOnce: r.heldAtOnce, HeldSince: r.heldSince,
		Conflict: r.conflict != nil,
		RetryAt:  r.retryAt, ProbeAt: r.probeAt, SettleAt: r.settleAt,
		Drained:      r.drain != nil && r.drain.done.Load(),
		ConnectWaits: r.waits[laneFirst] || r.waits[laneRetry] || r.waits[laneReplace],
		ProbeWaits:   r.waits[laneProbe] || r.waits[laneRecovery],
	}
	if r.held != nil {
		o.Held = r.held.Reason
	}
	if e != nil {
		o.Changed = !e.equalButCredentials(r.attempted) || r.retryNow.Load()
		o.CredentialsStale = e.CredentialsVersion != "" && e.CredentialsVersion != r.credentialsVersion
		o.CredentialsUnread = e.CredentialsVersion != "" && e.CredentialsVersion != r.readVersion
	}
	if r.conn != nil {
		r.observeConnection(&o)
	}
	return o
}

// observeConnection adds the connection's state to the observation.
func (r *record) observeConnection(o *lifecycle.Observation) {
	// A cluster is offboarded as far as possible even after a panic: nothing cleans up later. If starting the drain
	// panicked, the drain has no end.
	o.Lost = r.conn.transport.Panicked() && (r.state != StateDraining || r.drain == nil)
	if t := r.conn.transport; t.Unauthorized() || r.state != StateDraining && t.ClaimWanted() {
		o.SuspectAt = r.probedAt.Add(minProbeInterval)
	}
	// A request was answered 401, or needs the cluster to be claimed: probe soon, but not repeatedly. Once a probe has
	// failed, probes keep their interval: the threshold also gives an inconsistent API server some time.
	if !o.SuspectAt.IsZero() && r.probeFailures == 0 && o.SuspectAt.Before(o.ProbeAt) {
		o.ProbeAt = o.SuspectAt
	}
}

const (
	// minProbeInterval limits the probes triggered by 401 responses.
	minProbeInterval = time.Second
	// secondProbe is how soon a connection is probed again after a first failure: a transient failure is over by then, and
	// writes fail until the next probe.
	secondProbe = time.Second
)

// describe sets the reason and the message of the new state.
func (r *record) describe(from State, ev lifecycle.Event, why *condition.Error) {
	switch {
	case ev == lifecycle.EventConnectFailed && from.Engaged(): // Of a shadow, which changes nothing.
	case r.state == StateConnected:
		r.reason, r.message = fleetv1alpha1.ReasonConnected, "Connected"
	case r.state == StatePending && r.held != nil:
		r.reason, r.message = r.held.Reason, r.held.Message
	case r.state == StateDraining && from != StateDraining:
		why = r.drainReason(ev)
		r.reason, r.message = why.Reason, why.Message
	case r.state == StateConnecting && (r.attempts == 0 || from == StatePending):
		r.reason, r.message = fleetv1alpha1.ReasonConnecting, "The connection is being established"
	case why != nil:
		r.reason, r.message = why.Reason, why.Message
	}
}

func (r *record) drainReason(ev lifecycle.Event) *condition.Error {
	switch {
	case ev == lifecycle.EventUnenrolled:
		return condition.NewError(fleetv1alpha1.ReasonUnenrolled, "The cluster is no longer enrolled, and is being disconnected")
	case ev == lifecycle.EventRefused && r.conflict != nil:
		return r.conflict
	case r.held != nil:
		return r.held
	default:
		return condition.NewError(fleetv1alpha1.ReasonDraining, "The cluster is being disconnected")
	}
}

// snapshot returns the record as seen by readers.
func (r *record) snapshot() Cluster {
	message := r.message
	if r.state == StateConnected && r.held != nil {
		message = "Connected, and will be disconnected if this continues: " + r.held.Message
	}
	return Cluster{
		Name: r.name, Enrolment: r.enrolment, Unenrolled: r.unenrolled, State: r.state, Reason: r.reason, Message: message,
		ControlPlaneHealthy: r.health, KubernetesVersion: r.version, UID: r.uid, Identifier: r.identifier, Hub: r.hub,
		Unsynced: r.unsynced, Access: r.access(),
	}
}

// access returns how clients other than Masthead reach the cluster.
func (r *record) access() *Access {
	if r.conn == nil || r.conn.creds.Endpoint() == nil || r.readFrom == (SecretKey{}) {
		return nil
	}
	return &Access{Endpoint: *r.conn.creds.Endpoint(), Secret: r.readFrom}
}

// verbosity is the log level of a state change: 0 for news, 1 otherwise. A retry that fails for a known reason is no
// news: a thousand clusters that are down for a day would fill the log.
func (r *record) verbosity(from State) int {
	now := string(r.state) + "/" + r.reason
	if r.state == StateConnecting || r.logged == now && from != r.state {
		return 1
	}
	r.logged = now
	return 0
}
