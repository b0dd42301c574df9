// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/fence"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
)

const renewInterval = 2 * time.Second

// process is a manager with the controllers of the walk, as far as a walk distinguishes it from a real one.
type process struct {
	w      *world
	hub    *hub
	name   string
	fence  *fence.Fence
	cancel context.CancelFunc
	ended  chan struct{}
	// lease is how long the process holds the lease after it has renewed it.
	lease time.Duration
	// metrics are those of the agent.
	metrics *prometheus.Registry

	mu           sync.Mutex
	renewed      time.Time
	calls        []*call
	dead, exited bool
	// frozen is closed when the process is thawed; nil if it runs.
	frozen chan struct{}
}

// call is a request that the process has sent and that was not executed yet. A late one has been given up.
type call struct {
	process  *process
	server   *apiserver.Server
	label    string
	request  *http.Request
	body     []byte
	response chan response
	// A late call was given up, and can be executed until landsUntil.
	givenUp, landsUntil time.Time
}

type response struct {
	*http.Response
	err error
}

var (
	errConnectionLost = errors.New("the connection was lost")
	errKilled         = errors.New("the process was killed")
)

// lease is a lease that the process holds as long as it renews.
type lease struct{ resourcelock.Interface }

func (lease) Identity() string { return "self" }

func (lease) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// start starts a process of a hub and engages every cluster.
func (w *world) start(h *hub) {
	w.started++
	p := &process{
		w: w, hub: h, name: fmt.Sprintf("manager-%d", w.started), ended: make(chan struct{}),
		lease: w.clocks.lease, fence: fence.New(w.clocks.lease, clock.RealClock{}), metrics: prometheus.NewRegistry(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	w.mu.Lock()
	h.holder, w.hubs[p.name] = p, h
	w.mu.Unlock()
	p.renew()
	go p.keepLease(ctx)

	mgr, err := mcmanager.New(p.config(h.Server), nil, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		GracefulShutdownTimeout: new(time.Second), // Without any, a runnable that ends with an error meanwhile waits for ever.
	})
	if err != nil {
		panic(err)
	}
	gate, fleet := multicluster.NewGate(), &fakefleet.Fleet{}
	if err := w.runs.setup(mgr, fleet, gate, w.clocks.grace, p.metrics); err != nil {
		panic(err)
	}
	for _, c := range w.clusters {
		fleet.Set(c.connection(h.id))
	}
	running := sync.WaitGroup{}
	running.Go(func() {
		_ = mgr.Start(ctx) // It ends when it cannot read something for too long. Kubernetes restarts it then.
		p.mu.Lock()
		defer p.mu.Unlock()
		p.exited = true
	})
	for _, c := range w.clusters {
		cl, err := cluster.New(p.config(c.server), func(o *cluster.Options) { o.Scheme, o.Logger = scheme, logr.Discard() })
		if err != nil {
			panic(err)
		}
		running.Go(func() { _ = cl.Start(ctx) })
		gate.Open(c.name)
		running.Go(func() { _ = mgr.Engage(ctx, c.name, cl) })
	}
	go func() { running.Wait(); close(p.ended) }()
	w.processes = append(w.processes, p)
}

// connection is what the fleet knows of a cluster.
func (c *workload) connection(hub hubidentity.Identity) connection.Cluster {
	return connection.Cluster{
		Name: c.name, State: connection.StateConnected, UID: c.uid, Identifier: c.identifier, Hub: hubidentity.Owner{ID: hub},
		Enrolment: connection.Enrolment{
			Identifier: c.identifier, Class: className,
			Object: connection.ObjectReference{
				GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "default", Name: c.identifier, UID: "u",
			},
		},
	}
}

func (p *process) config(server *apiserver.Server) *rest.Config {
	return &rest.Config{
		Host: "http://server.invalid", QPS: -1, UserAgent: p.name, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		Transport: &freezer{p, p.fence.Wrap(&transport{p, server})},
	}
}

func (p *process) renew() {
	p.mu.Lock()
	p.renewed = time.Now()
	p.mu.Unlock()
	_ = p.fence.Lock(lease{}).Update(context.Background(), resourcelock.LeaderElectionRecord{HolderIdentity: lease{}.Identity()})
}

// keepLease renews the lease as long as the process runs.
func (p *process) keepLease(ctx context.Context) {
	t := time.NewTicker(renewInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if !p.isHung() && p.holds() {
				p.renew()
			}
		}
	}
}

// expired reports whether another process may take the lease.
func (p *process) expired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.renewed) >= p.lease
}

// holds reports whether a process holds the lease.
func (p *process) holds() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.hub.holder == p
}

func (p *process) isHung() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen != nil
}

func (p *process) hasExited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exited
}

func (p *process) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = make(chan struct{})
}

func (p *process) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// freezer lets a frozen process begin no request.
type freezer struct {
	process *process
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f *freezer) RoundTrip(req *http.Request) (*http.Response, error) {
	f.process.mu.Lock()
	frozen := f.process.frozen
	f.process.mu.Unlock()
	if frozen != nil && !isUnheld(req) {
		<-frozen
	}
	return f.next.RoundTrip(req)
}

// transport holds requests until the walk decides about them.
type transport struct {
	process *process
	server  *apiserver.Server
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := &call{process: t.process, server: t.server, request: req, response: make(chan response, 1)}
	if req.Body != nil {
		var err error
		if c.body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	if isUnheld(req) {
		return c.execute(req.Context())
	}
	c.label = t.process.w.serverName(t.server) + " " + req.Method + " " + short(req)
	if !c.isRead() && !t.process.holds() {
		t.process.w.checker.fail("Two managers do not write at a time", "%s: %s", t.process.name, c.label)
	}
	if !t.process.hold(c) {
		return nil, errKilled
	}
	select {
	case r := <-c.response:
		return r.Response, r.err
	case <-req.Context().Done():
		t.process.abandon(c)
		return nil, req.Context().Err()
	}
}

// isUnheld reports whether a request is answered at once: client-go discovers kinds under locks, and the explorer
// cannot wait while one is held.
func isUnheld(req *http.Request) bool {
	return apiserver.IsDiscovery(req) || strings.Contains(req.URL.Path, "/events")
}

func short(req *http.Request) string {
	path := req.URL.Path
	if req.URL.Query().Get("watch") != "" {
		path += " watch"
	}
	if req.URL.Query().Get("dryRun") != "" {
		path += " dry run"
	}
	return path
}

func (c *call) execute(ctx context.Context) (*http.Response, error) {
	req := c.request.Clone(ctx)
	if c.body != nil {
		req.Body = io.NopCloser(bytes.NewReader(c.body))
	}
	return c.server.RoundTrip(req)
}

func (c *call) isRead() bool { return c.request.Method == http.MethodGet }

func (p *process) hold(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false
	}
	p.calls = append(p.calls, c)
	return true
}

// take removes a call that is to be answered.
func (p *process) take(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.calls {
		if other == c {
			p.calls = append(p.calls[:i:i], p.calls[i+1:]...)
			return
		}
	}
}

// abandon keeps a call whose sender does not wait for the response any longer. Writes can still be executed.
func (p *process) abandon(c *call) {
	p.take(c)
	if c.isRead() {
		return
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	c.givenUp = time.Now()
	c.landsUntil = c.givenUp.Add(p.w.clocks.inFlight)
	p.w.late = append(p.w.late, c)
}

func (p *process) held() []*call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*call(nil), p.calls...)
}

// kill ends the process. What it has sent can still be executed.
func (p *process) kill() {
	p.thaw()
	p.mu.Lock()
	p.dead = true
	calls := p.calls
	p.mu.Unlock()
	for _, c := range calls {
		p.abandon(c)
		c.response <- response{err: errKilled}
	}
	p.cancel()
}

// name of the cluster in the fleet.
func clusterName(identifier string) mcr.ClusterName {
	return mcr.ClusterName("capi/fleet/" + identifier)
}
