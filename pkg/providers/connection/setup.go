// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// New returns a Provider. Create the manager, then the sources with its clients, then the Provider; pass it to
// mcmanager.WithMultiCluster and call SetupWithManager.
func New(o Options) (*Provider, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("cannot create a connection provider: %w", err)
	}
	p := &Provider{
		o:        &o,
		sources:  map[string]Source{},
		metrics:  newMetrics(o.Registerer),
		life:     &lifetime{},
		events:   transport.NewShared(o.Limits.Events),
		answers:  transport.NewShared(o.Limits.Answers),
		records:  newRecords(),
		schedule: schedule{&o},
	}
	for _, s := range o.Sources {
		p.sources[s.Name()] = s
	}
	p.view = newView(o.Clock, p.metrics, announcer{o.Recorder})
	p.lanes = newLanes(o.MaxConcurrentReconciles, o.MaxPerNamespace, p.records.wake)
	p.classes = &classRules{required: o.RequireClass, quota: newQuota(p.records.wake)}
	p.identities = &identities{arbiter: newArbiter(), sources: p.sources, records: p.records}
	p.panics = &panics{metrics: p.metrics, records: p.records}

	claims := &hubMarker{o: &o, classes: p.classes}
	talk := &dialer{o: &o, sources: p.sources, lanes: p.lanes, metrics: p.metrics}
	p.connector = &connector{
		o: &o, contact: talk, identities: p.identities, marker: claims, view: p.view, records: p.records,
		metrics: p.metrics, panics: p.panics, life: p.life,
	}
	p.checker = &checker{o: &o, contact: talk, marker: claims, view: p.view, metrics: p.metrics, schedule: p.schedule}
	p.engager = &engager{o: &o, view: p.view, metrics: p.metrics, life: p.life}
	p.offboarding = &offboarding{o: &o, marker: claims, records: p.records, life: p.life, places: p.lanes[laneOffboard].Shared}
	return p, nil
}

// SetupWithManager makes the Provider read the hub through the manager's local cluster. Call it before the manager
// starts. The manager starts the Provider itself, once it is elected.
func (p *Provider) SetupWithManager(mgr mcmanager.Manager) error {
	local := mgr.GetLocalManager()
	p.hub, p.classes.hub = local, local.GetClient()
	c, err := controller.NewTypedUnmanaged("connection", controller.TypedOptions[Key]{
		Reconciler:              p,
		MaxConcurrentReconciles: workersFor(p.o.MaxConcurrentReconciles),
		RecoverPanic:            new(true),
		UsePriorityQueue:        new(true),
		NewQueue:                newQueue,
		SkipNameValidation:      local.GetControllerOptions().SkipNameValidation,
		CacheSyncTimeout:        local.GetControllerOptions().CacheSyncTimeout,
		LogConstructor:          logConstructor(local.GetLogger()),
	})
	if err != nil {
		return fmt.Errorf("cannot create the connection controller: %w", err)
	}
	p.controller = c
	for _, s := range p.o.Sources {
		watches, err := s.Watches(local)
		if err != nil {
			return fmt.Errorf("cannot set up the watches of source %q: %w", s.Name(), err)
		}
		for _, w := range watches {
			if err := c.Watch(w); err != nil {
				return fmt.Errorf("cannot watch for source %q: %w", s.Name(), err)
			}
		}
	}
	if p.o.RequireClass {
		if err := c.Watch(p.classWatch(local)); err != nil {
			return fmt.Errorf("cannot watch EnrollmentClasses: %w", err)
		}
		if err := c.Watch(p.namespaceWatch(local)); err != nil {
			return fmt.Errorf("cannot watch Namespaces: %w", err)
		}
	}
	return c.Watch(source.TypedFunc[Key](func(_ context.Context, q workqueue.TypedRateLimitingInterface[Key]) error {
		p.records.wakeBy(q)
		return nil
	}))
}

// classWatch requeues the enrolments of a class when it is created, changed or deleted.
func (p *Provider) classWatch(hub cluster.Cluster) source.TypedSource[Key] {
	return source.TypedKind(hub.GetCache(), &fleetv1alpha1.EnrollmentClass{}, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, class *fleetv1alpha1.EnrollmentClass) []Key {
			return p.records.ofClass(class.Name)
		}),
		predicate.TypedGenerationChangedPredicate[*fleetv1alpha1.EnrollmentClass]{})
}

// namespaceWatch requeues the enrolments of a hub namespace when it is created or its labels change, since a class may
// select on them.
func (p *Provider) namespaceWatch(hub cluster.Cluster) source.TypedSource[Key] {
	return source.TypedKind(hub.GetCache(), namespaceMetadata(), handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, ns *metav1.PartialObjectMetadata) []Key { return p.records.ofNamespace(ns.Name) }),
		predicate.TypedLabelChangedPredicate[*metav1.PartialObjectMetadata]{})
}

// Start connects clusters until ctx ends, and returns when every connection has ended. The manager calls it.
func (p *Provider) Start(ctx context.Context, aware mcr.Aware) error {
	if p.controller == nil {
		return errors.New("cannot start the connection provider: SetupWithManager was not called")
	}
	if err := p.prepare(ctx, aware); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // Stopped before the hub could be read.
		}
		return err
	}
	err := p.controller.Start(ctx)
	p.stop()
	return err
}

// prepare loads what the first connection needs.
func (p *Provider) prepare(ctx context.Context, aware mcr.Aware) error {
	if err := p.loadHubUID(ctx); err != nil {
		return err
	}
	if err := p.loadPins(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return errors.New("cannot start the connection provider twice")
	}
	p.started = true
	p.engager.aware, p.life.ctx = aware, ctx
	p.connector.share = connectionOptions{
		scheme: p.o.Scheme, credentials: p.o.Credentials,
		requestTimeout: p.o.RequestTimeout, probeTimeout: p.o.ProbeTimeout,
		qps: p.o.QPS, burst: p.o.Burst, userAgent: p.o.UserAgent, lists: p.o.Lists,
	}
	return nil
}

// hubRetry is the back-off of hub reads at start: the hub's API server may be restarting as well.
var hubRetry = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7}

func (p *Provider) loadHubUID(ctx context.Context) error {
	if p.o.HubUID != "" {
		p.identities.arbiter.hubUID = p.o.HubUID
		return nil
	}
	ns := namespaceMetadata()
	err := retryRead(ctx, func() error {
		return p.hub.GetAPIReader().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, ns)
	})
	if err != nil {
		return fmt.Errorf("cannot get the hub's namespace kube-system, whose UID identifies the hub: %w", err)
	}
	p.identities.arbiter.hubUID = string(ns.UID)
	return nil
}

func (p *Provider) loadPins(ctx context.Context) error {
	byKey := map[Key]Pin{}
	defer func() { p.records.pin(byKey) }()
	if p.o.Pins == nil {
		return nil
	}
	var pins map[mcr.ClusterName]Pin
	err := retryRead(ctx, func() error {
		var err error
		pins, err = p.o.Pins.Load(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot load the recorded cluster of each enrolment: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		k, ok := ParseClusterName(name)
		if _, known := p.sources[k.Source]; ok && known && pins[name].valid() {
			byKey[k] = pins[name]
			p.identities.arbiter.pin(k, pins[name])
			if p.o.RequireClass && pins[name].Class != "" {
				p.classes.quota.reserve(k, pins[name].Class)
			}
		}
	}
	return nil
}

func retryRead(ctx context.Context, read func() error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, hubRetry, func(context.Context) (bool, error) {
		last = read()
		return last == nil, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// stop ends every connection and waits.
func (p *Provider) stop() {
	for _, c := range p.view.connections() {
		c.close(errStopped)
	}
	p.life.running.Wait()
}

// logConstructor adds the cluster to every log line.
func logConstructor(base logr.Logger) func(*Key) logr.Logger {
	base = base.WithValues("controller", "connection")
	return func(k *Key) logr.Logger {
		if k == nil {
			return base
		}
		return base.WithValues("cluster", k.String())
	}
}

// newQueue returns a queue without priorities. Priorities are strict: lower ones starve while higher ones have items,
// so enough healthy clusters would keep failed ones from recovering, and those of the first list from being connected.
// The lanes share out expensive work instead.
func newQueue(name string, limiter workqueue.TypedRateLimiter[Key]) workqueue.TypedRateLimitingInterface[Key] {
	return &levelQueue{priorityqueue.New(name, func(o *priorityqueue.Opts[Key]) { o.RateLimiter = limiter })}
}

type levelQueue struct {
	priorityqueue.PriorityQueue[Key]
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *levelQueue) AddWithOpts(o priorityqueue.AddOpts, items ...Key) {
	o.Priority = nil
	q.PriorityQueue.AddWithOpts(o, items...)
}
