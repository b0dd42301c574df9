// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/connrotation"

	"github.com/masthead-dev/masthead/pkg/bounded"
	"github.com/masthead-dev/masthead/pkg/budget"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A Mode is what a Transport lets through.
type Mode int32

const (
	// Open lets everything through.
	Open Mode = iota
	// ReadOnly has what writes fail at once.
	ReadOnly
	// closed has everything fail at once.
	closed
)

// Transport carries the requests of one connection to one API server. It is the only place that knows the token.
//
//   - The token is put in when a request leaves, so that a swapped token is used from the next request on and nothing
//     has to be built anew. It is sent to the configured host only.
//   - Redirects are errors: an API server has no reason to redirect, and following one would let the owner of a
//     workload cluster have the manager send requests to a host of their choice.
//   - What a name resolves to is checked when it is dialled, see credentials.Options.CheckAddress. So that this is the
//     API server's address, the proxy that the environment of this process names is not used: a proxy resolves names
//     itself, and reaches what the manager must not. The proxy of a kubeconfig is, if the operator allows such
//     kubeconfigs.
//   - Answers are bounded before they are decoded, see Limits: they are JSON, not compressed, and scanned as they
//     arrive. Neither protobuf nor compression is asked for: a bound of the bytes would bound neither. Lists cost more
//     traffic for it.
//   - Each connection has an http.Transport of its own, which is not in client-go's shared cache, so that closing it
//     closes the sockets and ends their goroutines now, not when they time out. HTTP/2 connections are pinged as
//     client-go's are.
type Transport struct {
	base    *http.Transport
	tracker *connrotation.ConnectionTracker
	server  *url.URL
	agent   string
	name    string
	verbs   *verbs
	owner   Owner

	// authorization is the header for the token: once for all requests, since each watch holds on to its own request.
	authorization atomic.Pointer[string]
	mode          atomic.Int32
	// unclaimed is whether the cluster has to be claimed for this hub before something is written to it. claimWanted is
	// set when a request of a client needs it, for which unauthorized is called, too.
	unclaimed, claimWanted atomic.Bool
	// suspect is set when a request of a client is answered 401; unauthorized is called when it becomes set, and must not
	// block.
	suspect      atomic.Bool
	unauthorized func()
	// dials counts the TCP connections that were made.
	dials atomic.Int64
	// panicked is set by SetPanicked.
	panicked atomic.Bool
}

var _ utilnet.RoundTripperWrapper = &Transport{}

// An Owner is for whom a Transport works: whom it tells what it sees, and what it charges.
type Owner struct {
	// Limits are how much of an answer is read.
	Limits Limits
	// Watches counts the WATCH requests, and Requests all of them; nil if nobody asks.
	Watches  prometheus.Counter
	Requests *Counts
	// Pacing is that of all that clients are answered; nil if nobody counts.
	Pacing *Pacing
	// Refused is told of each answer that was refused. It must not block.
	Refused func(error)
	// Account is charged with answers under way, and with what is kept of the cluster's objects. It is closed with the
	// Transport; nil if nobody counts.
	Account *budget.Account
	// Guard recovers panics of what handles the cluster. Without one, nobody is told.
	Guard *guard.Guard
}

// Serve has the Transport work for an owner. Call it before the first request; until then, answers have the default
// limits, and nobody is told anything.
func (t *Transport) Serve(o Owner) { t.owner = o }

// Guard recovers panics of what handles the cluster; nil before Serve.
func (t *Transport) Guard() *guard.Guard { return t.owner.Guard }

// Account is charged with what is kept of the cluster's objects; nil if nobody counts.
func (t *Transport) Account() *budget.Account { return t.owner.Account }

// Server is the address of the API server, which must not be changed.
func (t *Transport) Server() *url.URL { return t.server }

// Dials is how many TCP connections have been made.
func (t *Transport) Dials() int64 { return t.dials.Load() }

// SetPanicked notes that something of the cluster made the manager panic, and says whether that is the first time.
func (t *Transport) SetPanicked() bool { return t.panicked.CompareAndSwap(false, true) }

// Panicked is whether something of the cluster made the manager panic.
func (t *Transport) Panicked() bool { return t.panicked.Load() }

// Suspect is whether a request of a client was answered 401 since the last call of Trust.
func (t *Transport) Suspect() bool { return t.suspect.Load() }

// Trust forgets that a request was answered 401: somebody is about to find out.
func (t *Transport) Trust() { t.suspect.Store(false) }

// HoldWrites has what writes fail until the cluster is claimed, or not any more.
func (t *Transport) HoldWrites(hold bool) { t.unclaimed.Store(hold) }

// Unclaimed is whether the cluster has to be claimed before something is written to it.
func (t *Transport) Unclaimed() bool { return t.unclaimed.Load() }

// ClaimWanted is whether a request of a client failed because the cluster is not claimed.
func (t *Transport) ClaimWanted() bool { return t.claimWanted.Load() }

// TakeClaimWanted is ClaimWanted, and forgets it.
func (t *Transport) TakeClaimWanted() bool { return t.claimWanted.Swap(false) }

// SetToken has the next request use another token.
func (t *Transport) SetToken(token string) { t.authorization.Store(new(bearer(token))) }

// Token is the one that the next request will use.
func (t *Transport) Token() string { return strings.TrimPrefix(*t.authorization.Load(), "Bearer ") }

// bearer is the header Authorization for a token; empty for none.
func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// Allow sets what gets through. A closed Transport stays closed.
func (t *Transport) Allow(m Mode) {
	for {
		old := t.mode.Load()
		if old == int32(closed) || t.mode.CompareAndSwap(old, int32(m)) {
			return
		}
	}
}

// Mode is what gets through.
func (t *Transport) Mode() Mode { return Mode(t.mode.Load()) }

// CloseConnections closes every socket. A request that follows makes another.
func (t *Transport) CloseConnections() {
	t.base.CloseIdleConnections()
	t.tracker.CloseAll()
}

// Close fails everything from now on, and closes every socket.
func (t *Transport) Close() {
	t.mode.Store(int32(closed))
	t.CloseConnections()
	t.owner.Account.Close()
}

func (t *Transport) notConnected() error {
	return fmt.Errorf("cluster %q: %w", t.name, multicluster.ErrClusterNotConnected)
}

// RoundTrip sends a request of a client.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	m := t.Mode()
	if m == closed || (m == ReadOnly && writes(req.Method)) {
		closeBody(req)
		return nil, t.notConnected()
	}
	if writes(req.Method) && t.unclaimed.Load() && !isReview(req) {
		closeBody(req)
		if t.claimWanted.CompareAndSwap(false, true) {
			t.unauthorized()
		}
		return nil, t.notConnected()
	}
	if t.owner.Watches != nil && isWatch(req) {
		t.owner.Watches.Inc()
	}
	resp, err := t.send(req, *t.authorization.Load(), t.owner.Pacing)
	if err == nil && resp.StatusCode == http.StatusUnauthorized && t.suspect.CompareAndSwap(false, true) {
		t.unauthorized()
	}
	return resp, err
}

// WrappedRoundTripper lets client-go close idle connections.
func (t *Transport) WrappedRoundTripper() http.RoundTripper { return t.base }

// Ask sends a question about the cluster itself, with a token that need not be the one that clients use. Neither the
// pace nor the mode holds it up.
func (t *Transport) Ask(req *http.Request, token string) (*http.Response, error) {
	return t.send(req, bearer(token), nil)
}

// send is what clients and probes share. pacing is nil if the answer is to be read at once.
func (t *Transport) send(req *http.Request, authorization string, pacing *Pacing) (resp *http.Response, err error) {
	if req.URL.Scheme != t.server.Scheme || req.URL.Host != t.server.Host {
		closeBody(req)
		return nil, fmt.Errorf("cluster %q: a request to another host than the API server was refused", t.name)
	}
	req = req.Clone(req.Context())
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", t.agent)
	}
	onlyJSON(req.Header)
	if t.owner.Requests != nil {
		defer func() { t.owner.Requests.Add(t.verbs.of(req), resp) }()
	}
	if resp, err = t.base.RoundTrip(req); err != nil {
		return nil, err
	}
	if err := t.bound(resp, req, pacing); err != nil { //nolint:contextcheck // The context is that of the request.
		return nil, fmt.Errorf("cluster %q: %w", t.name, err)
	}
	return resp, nil
}

// bound has the body of an answer be bounded, read at a pace, and guarded, or refuses the answer for its header.
func (t *Transport) bound(resp *http.Response, req *http.Request, pacing *Pacing) error {
	refused := func(err error) {
		t.owner.Refused(err)
		bounded.Report(req.Context(), err)
	}
	// A holder holds nothing until it is charged with an answer, and is forgotten when that is closed.
	open := func(abort func(error)) bounded.Account { return t.owner.Account.Holder(abort) }
	if err := boundAnswer(resp, req, t.server.Path, t.owner.Limits, open, refused); err != nil {
		return err
	}
	if pacing != nil {
		if body, ok := resp.Body.(*bounded.Body); ok {
			body.Pace(pacing.ofBody(req, t.server.Path))
		}
	}
	resp.Body = &guardedBody{ReadCloser: resp.Body, guard: t.owner.Guard}
	return nil
}

func isWatch(req *http.Request) bool {
	on, err := strconv.ParseBool(req.URL.Query().Get("watch"))
	return err == nil && on
}

// isStream is whether a request asks for a watch that begins with a list.
func isStream(req *http.Request) bool {
	on, err := strconv.ParseBool(req.URL.Query().Get("sendInitialEvents"))
	return err == nil && on && isWatch(req)
}

func writes(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return false
	default:
		return true
	}
}

// isReview is whether a request asks a question that is sent as a creation, which nothing is written for.
func isReview(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/selfsubjectreviews") }

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
