// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/masthead-dev/masthead/pkg/bounded"
	"github.com/masthead-dev/masthead/pkg/budget"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

const (
	dialTimeout = 5 * time.Second
	// maxResponseHeaderBytes limits what a hostile API server can make the manager hold. client-go needs a few hundred.
	maxResponseHeaderBytes = 64 << 10

	// What an API server may send before it is read, of one answer and of all that are under way. Go's own limits are 4
	// MiB and 1 GiB; 4 MiB is the most that can be asked for.
	maxUnreadOfAnswer = 256 << 10
	maxUnread         = 4<<20 - 1
)

// mode is what a transport lets through.
type mode int32

const (
	modeOpen     mode = iota // everything
	modeReadOnly             // what writes fails at once
	modeClosed               // everything fails at once
)

// transport carries the requests of one connection to one API server. It is the only place that knows the token.
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
type transport struct {
	base    *http.Transport
	tracker *connrotation.ConnectionTracker
	server  *url.URL
	agent   string
	name    string
	limits  Limits

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
	// watches counts the WATCH requests, and requests all of them; nil if nobody asks.
	watches  prometheus.Counter
	requests *requestCounts
	verbs    *verbs
	// pace is that of all that clients are answered; nil if nobody counts.
	pace *pace
	// refused is told of each answer that was refused. It must not block.
	refused func(error)
	// account is charged with answers under way, and with what is kept of the cluster's objects. It is closed with the
	// transport; nil if nobody counts.
	account *budget.Account
	// guard recovers panics of what handles the cluster, and sets panicked. Without one, nobody is told.
	guard    *guard.Guard
	panicked atomic.Bool
}

var _ utilnet.RoundTripperWrapper = &transport{}

func newTransport(name string, creds *credentials.Credentials, o credentials.Options, agent string, unauthorized func()) (*transport, error) {
	cfg := creds.RESTConfig()
	server, err := url.Parse(creds.Host())
	if err != nil {
		return nil, errors.New("cannot read the server's address")
	}
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, errors.New("cannot use the certificates")
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	proxy := cfg.Proxy
	if proxy == nil {
		// Not nil, for which SetTransportDefaults would put the environment's proxy.
		proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // No proxy, as http.Transport has it.
	}
	t := &transport{
		tracker: connrotation.NewConnectionTracker(), server: server, agent: agent, name: name, unauthorized: unauthorized,
		limits: Limits{}.withDefaults(), refused: func(error) {}, verbs: newVerbs(server.Path),
	}
	dialer := &net.Dialer{
		Timeout:   dialTimeout,
		KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return checkDial(address, o)
		},
	}
	t.base = utilnet.SetTransportDefaults(&http.Transport{
		Proxy:                  proxy,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConnsPerHost:    25,
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
		DisableCompression:     true,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: maxUnread,
			MaxReceiveBufferPerStream:     maxUnreadOfAnswer,
		},
		// A goroutine of http.Transport calls it.
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			err = t.guard.Run("dialling", func() (err error) {
				c, err = t.dial(ctx, dialer, network, address)
				return err
			})
			return c, err
		},
	})
	t.setToken(creds.Token())
	return t, nil
}

// dial makes a TCP connection that ends with the transport.
func (t *transport) dial(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
	c, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	t.dials.Add(1)
	c = t.tracker.Track(c)
	if t.mode.Load() == int32(modeClosed) { // Closed meanwhile: CloseAll may have missed this one.
		_ = c.Close()
		return nil, t.notConnected()
	}
	return c, nil
}

// errRefusedAddress marks an address that is not connected to.
var errRefusedAddress = errors.New("address refused")

func checkDial(address string, o credentials.Options) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: not an IP address and port", errRefusedAddress)
	}
	if err := o.CheckAddress(ap.Addr()); err != nil {
		return fmt.Errorf("%w: %w", errRefusedAddress, err)
	}
	return nil
}

func (t *transport) setToken(token string) { t.authorization.Store(new(bearer(token))) }

// token is the one that the next request will use.
func (t *transport) token() string { return strings.TrimPrefix(*t.authorization.Load(), "Bearer ") }

// bearer is the header Authorization for a token; empty for none.
func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// allow sets what gets through. A closed transport stays closed.
func (t *transport) allow(m mode) {
	for {
		old := t.mode.Load()
		if old == int32(modeClosed) || t.mode.CompareAndSwap(old, int32(m)) {
			return
		}
	}
}

// holdWrites has what writes fail until the cluster is claimed, or not any more.
func (t *transport) holdWrites(hold bool) { t.unclaimed.Store(hold) }

// close fails everything from now on, and closes every socket.
func (t *transport) close() {
	t.mode.Store(int32(modeClosed))
	t.base.CloseIdleConnections()
	t.tracker.CloseAll()
	t.account.Close()
}

func (t *transport) notConnected() error {
	return fmt.Errorf("cluster %q: %w", t.name, multicluster.ErrClusterNotConnected)
}

// RoundTrip sends a request of a client.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	m := mode(t.mode.Load())
	if m == modeClosed || (m == modeReadOnly && writes(req.Method)) {
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
	if t.watches != nil && isWatch(req) {
		t.watches.Inc()
	}
	resp, err := t.send(req, *t.authorization.Load(), t.pace)
	if err == nil && resp.StatusCode == http.StatusUnauthorized && t.suspect.CompareAndSwap(false, true) {
		t.unauthorized()
	}
	return resp, err
}

// WrappedRoundTripper lets client-go close idle connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.base }

// send is what clients and probes share. pace is nil if the answer is to be read at once.
func (t *transport) send(req *http.Request, authorization string, pace *pace) (resp *http.Response, err error) {
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
	if t.requests != nil {
		defer func() { t.requests.add(t.verbs.of(req), resp) }()
	}
	if resp, err = t.base.RoundTrip(req); err != nil {
		return nil, err
	}
	refused := func(err error) { //nolint:contextcheck // The context is that of the request.
		t.refused(err)
		bounded.Report(req.Context(), err)
	}
	// A holder holds nothing until it is charged with an answer, and is forgotten when that is closed.
	open := func(abort func(error)) bounded.Account { return t.account.Holder(abort) }
	if err := boundAnswer(resp, req, t.server.Path, t.limits, open, refused); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", t.name, err)
	}
	if pace != nil {
		pace.begun()
		if body, ok := resp.Body.(*bounded.Body); ok {
			body.Pace(pace.ofBody(req, t.server.Path))
		}
	}
	resp.Body = &guardedBody{ReadCloser: resp.Body, guard: t.guard}
	return resp, nil
}

func isWatch(req *http.Request) bool {
	on, err := strconv.ParseBool(req.URL.Query().Get("watch"))
	return err == nil && on
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
