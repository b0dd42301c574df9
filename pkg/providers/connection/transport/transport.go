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
	clienttransport "k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"

	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A Mode determines which requests a Transport lets through.
type Mode int32

const (
	// Open lets everything through.
	Open Mode = iota
	// ReadOnly makes writes fail at once.
	ReadOnly
	// closed makes everything fail at once.
	closed
)

// Transport sends the requests of one connection to one API server. Only it knows the token.
//
//   - The token is added when a request is sent, so a swapped token is used from the next request on and nothing needs
//     to be rebuilt. It is sent to the configured host only.
//   - Redirects are errors: an API server has no reason to redirect, and following one would let the owner of a
//     workload cluster direct requests to a host of their choice.
//   - The resolved address is checked when it is dialled, see credentials.Options.CheckAddress. The proxy of this
//     process's environment is not used: a proxy resolves names itself, and could reach what the manager must not. The
//     proxy of a kubeconfig is used, if the operator allows such kubeconfigs.
//   - Responses are bounded before they are decoded, see Limits: they are uncompressed JSON, scanned as they arrive.
//     Neither protobuf nor compression is requested: a limit on bytes would bound neither. Lists cost more traffic for
//     it.
//   - Each connection has its own http.Transport, outside client-go's shared cache, so closing it closes the sockets
//     and ends their goroutines now, not at a time-out. HTTP/2 pings work as in client-go.
type Transport struct {
	base *http.Transport
	// sender is base in what the owner wraps around it. Every request is sent by it.
	sender  http.RoundTripper
	tracker *connrotation.ConnectionTracker
	server  *url.URL
	agent   string
	name    string
	verbs   *verbs
	owner   Owner

	// authorization is the header for the token, shared by all requests, since each watch keeps its request in memory.
	authorization atomic.Pointer[string]
	mode          atomic.Int32
	// unclaimed reports whether the cluster must be claimed for this hub before anything is written to it. claimWanted is
	// set when a client's request needs the claim; unauthorized is then called, too.
	unclaimed, claimWanted atomic.Bool
	// isUnauthorized is set when a client's request is answered 401; unauthorized is called when it becomes set, and must
	// not block.
	isUnauthorized atomic.Bool
	unauthorized   func()
	// dials counts the TCP connections made.
	dials atomic.Int64
	// panicked is set by SetPanicked.
	panicked atomic.Bool
}

var _ utilnet.RoundTripperWrapper = &Transport{}

// An Owner holds what a Transport reports to and charges.
type Owner struct {
	// Wrap wraps what sends the requests; nil for nothing.
	Wrap clienttransport.WrapperFunc
	// Limits restrict how much of a response is read.
	Limits Limits
	// Watches counts WATCH requests, and Requests all requests; nil to not count.
	Watches  prometheus.Counter
	Requests *Counts
	// Pacing paces all responses to clients; nil for none.
	Pacing *Pacing
	// Refused is called for each refused response. It must not block.
	Refused func(error)
	// Account is charged with responses in flight and kept objects of the cluster. It is closed with the Transport; nil if
	// memory is not counted.
	Account *limits.Account
	// Guard recovers panics of code that handles the cluster. Without one, they are not reported.
	Guard *guard.Guard
}

// Serve sets the owner. Call it before the first request; until then, responses have the default limits, and nothing is
// reported.
func (t *Transport) Serve(o Owner) {
	t.owner, t.sender = o, clienttransport.Wrappers(o.Wrap)(t.base)
}

// Guard recovers panics of code that handles the cluster; nil before Serve.
func (t *Transport) Guard() *guard.Guard { return t.owner.Guard }

// Account is charged with kept objects of the cluster; nil if memory is not counted.
func (t *Transport) Account() *limits.Account { return t.owner.Account }

// Server returns the address of the API server, which must not be changed.
func (t *Transport) Server() *url.URL { return t.server }

// Dials returns the number of TCP connections made.
func (t *Transport) Dials() int64 { return t.dials.Load() }

// SetPanicked records that the cluster's data made the manager panic, and reports whether this is the first time.
func (t *Transport) SetPanicked() bool { return t.panicked.CompareAndSwap(false, true) }

// Panicked reports whether the cluster's data made the manager panic.
func (t *Transport) Panicked() bool { return t.panicked.Load() }

// Unauthorized reports whether a client's request was answered 401 since the last call of Trust.
func (t *Transport) Unauthorized() bool { return t.isUnauthorized.Load() }

// ClearUnauthorized resets Suspect. The caller is about to check the credentials.
func (t *Transport) ClearUnauthorized() { t.isUnauthorized.Store(false) }

// HoldWrites makes writes fail until the cluster is claimed, or lets them through.
func (t *Transport) HoldWrites(hold bool) { t.unclaimed.Store(hold) }

// Unclaimed reports whether the cluster must be claimed before anything is written to it.
func (t *Transport) Unclaimed() bool { return t.unclaimed.Load() }

// ClaimWanted reports whether a client's request failed because the cluster is not claimed.
func (t *Transport) ClaimWanted() bool { return t.claimWanted.Load() }

// TakeClaimWanted returns ClaimWanted and resets it.
func (t *Transport) TakeClaimWanted() bool { return t.claimWanted.Swap(false) }

// SetToken makes the next request use another token.
func (t *Transport) SetToken(token string) { t.authorization.Store(new(bearer(token))) }

// Token returns the token that the next request will use.
func (t *Transport) Token() string { return strings.TrimPrefix(*t.authorization.Load(), "Bearer ") }

// bearer returns the Authorization header for a token; empty for none.
func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// Allow sets the mode. A closed Transport stays closed.
func (t *Transport) Allow(m Mode) {
	for {
		old := t.mode.Load()
		if old == int32(closed) || t.mode.CompareAndSwap(old, int32(m)) {
			return
		}
	}
}

// Mode returns the current mode.
func (t *Transport) Mode() Mode { return Mode(t.mode.Load()) }

// CloseConnections closes every socket. The next request opens a new one.
func (t *Transport) CloseConnections() {
	t.base.CloseIdleConnections()
	t.tracker.CloseAll()
}

// Close makes all further requests fail, and closes every socket.
func (t *Transport) Close() {
	t.mode.Store(int32(closed))
	t.CloseConnections()
	t.owner.Account.Close()
}

func (t *Transport) notConnected() error {
	return fmt.Errorf("cluster %q: %w", t.name, multicluster.ErrClusterNotConnected)
}

// RoundTrip sends a client's request.
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
	if err == nil && resp.StatusCode == http.StatusUnauthorized && t.isUnauthorized.CompareAndSwap(false, true) {
		t.unauthorized()
	}
	return resp, err
}

// WrappedRoundTripper lets client-go close idle connections.
func (t *Transport) WrappedRoundTripper() http.RoundTripper { return t.base }

// Ask sends a probe, with a token that may differ from the clients' token. Neither pace nor mode applies.
func (t *Transport) Ask(req *http.Request, token string) (*http.Response, error) {
	return t.send(req, bearer(token), nil)
}

// send is shared by clients and probes. pacing is nil to read the response without delay.
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
	if resp, err = t.sender.RoundTrip(req); err != nil {
		return nil, err
	}
	if err := t.bound(resp, req, pacing); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", t.name, err)
	}
	return resp, nil
}

// bound makes the body of a response bounded, paced and guarded, or refuses the response because of its header.
func (t *Transport) bound(resp *http.Response, req *http.Request, pacing *Pacing) error {
	// A holder holds nothing until it is charged with a response, and is removed when that is closed.
	open := func(abort func(error)) limits.Charge { return t.owner.Account.Answer(abort) }
	if err := boundAnswer(resp, req, t.server.Path, t.owner.Limits, open, t.owner.Refused); err != nil {
		return err
	}
	if pacing != nil {
		if body, ok := resp.Body.(*limits.Body); ok {
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

// isStream reports whether a request is a watch that begins with a list.
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

// isReview reports whether a request is a review: a query sent as a create, which writes nothing.
func isReview(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/selfsubjectreviews") }

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
