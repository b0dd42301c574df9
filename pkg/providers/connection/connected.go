// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/dynamicclient"
	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// Causes of the end of a connection's context.
var (
	errSucceeded = errors.New("replaced by a new connection")
	errStopped   = errors.New("the provider stopped")
)

// lifetime is shared by all connections: their goroutines end with ctx, and Provider.stop waits for them.
type lifetime struct {
	ctx     context.Context //nolint:containedctx // It is what the name says. Set by Start, before the first reconcile.
	running sync.WaitGroup
}

// connectionOptions are shared by all connections.
type connectionOptions struct {
	scheme         *runtime.Scheme
	credentials    credentials.Options
	requestTimeout time.Duration
	probeTimeout   time.Duration
	qps            float32
	burst          int
	userAgent      string
	lists          *limits.Semaphore[any]
}

// connected is a live connection to one cluster.
type connected struct {
	cluster.Cluster
	name      mcr.ClusterName
	creds     *credentials.Credentials // changed by swapToken only, by the worker that holds the key
	uid       string
	transport *transport.Transport
	// verified is the number of TCP connections made when the cluster's identity was last checked. Only the worker that
	// holds the key accesses it.
	verified int64
	prober   probe.Prober
	dynamic  dynamicclient.Objects
	metadata dynamicclient.Metadata
	shared   *kindwatch.Shared
	lists    *limits.Semaphore[any]
	events   *eventWriter
	progress kindwatch.Progress
	// replaced is called when the connection that this one replaces has ended, and may be called again.
	replaced func()
	ctx      context.Context //nolint:containedctx // It is the life of this object.
	cancel   context.CancelCauseFunc
}

var _ Connected = &connected{}

// Dynamic returns a client without a time-out.
func (c *connected) Dynamic() dynamicclient.Objects { return c.dynamic }

// Metadata returns a client of metadata without a time-out.
func (c *connected) Metadata() dynamicclient.Metadata { return c.metadata }

// Shared runs one watch per kind for all controllers that use it.
func (c *connected) Shared() *kindwatch.Shared { return c.shared }

// Lists limits how many kinds are listed at once in all clusters.
func (c *connected) Lists() *limits.Semaphore[any] { return c.lists }

// Account is charged with kept objects of the cluster; nil if memory is not counted.
func (c *connected) Account() *limits.Account { return c.transport.Account() }

// Progress reports which kinds are not synced.
func (c *connected) Progress() *kindwatch.Progress { return &c.progress }

// Guard recovers panics of code that handles the cluster, and ends the connection.
func (c *connected) Guard() *guard.Guard { return c.transport.Guard() }

// GetAPIReader returns the client, which reads live. Its requests have a deadline, including the wait for the rate
// limiter.
func (c *connected) GetAPIReader() client.Reader { return c.GetClient() }

// Context ends when this connection does.
func (c *connected) Context() context.Context { return c.ctx }

// newConnected builds a connection and starts nothing. The caller has already probed the cluster through the transport.
func newConnected(
	ctx context.Context, name mcr.ClusterName, creds *credentials.Credentials, uid string, t *transport.Transport,
	limiter flowcontrol.RateLimiter, dropped prometheus.Counter, log logr.Logger, o connectionOptions,
) (*connected, error) {
	cfg := &rest.Config{
		Host:        creds.Host(),
		Transport:   t,
		UserAgent:   o.userAgent,
		RateLimiter: limiter,
		QPS:         o.qps,
		Burst:       o.burst,
		// Otherwise our log would repeat the text of a cluster's warning headers.
		WarningHandlerWithContext: rest.NoWarnings{},
	}
	requests := &http.Client{Transport: t, Timeout: o.requestTimeout}
	watches := &http.Client{Transport: multicluster.WithTimeout(t, multicluster.WatchTimeout)}

	served, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, requests)
	if err != nil {
		return nil, fmt.Errorf("cannot create a discovery client: %w", err)
	}
	dyn, err := dynamicclient.New(cfg, watches)
	if err != nil {
		return nil, fmt.Errorf("cannot create a dynamic client: %w", err)
	}
	metadata, err := dynamicclient.NewMetadata(cfg, watches)
	if err != nil {
		return nil, fmt.Errorf("cannot create a metadata client: %w", err)
	}
	cl, err := cluster.New(cfg, withoutCache(o.requestTimeout), func(co *cluster.Options) {
		co.Scheme = o.scheme
		co.Logger = log
		co.HTTPClient = requests
		co.MapperProvider = func(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
			everything, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
			if err != nil {
				return nil, err
			}
			return kindwatch.NewMapper(served, everything, t.Account()), nil
		}
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	c := &connected{
		Cluster: cl, name: name, creds: creds, uid: uid, transport: t, dynamic: dyn, metadata: metadata,
		prober: probe.New(t, o.probeTimeout), lists: o.lists, replaced: func() {},
	}
	watched, err := multicluster.WatchOptions(c)
	if err != nil {
		return nil, err
	}
	if c.shared, err = kindwatch.NewShared(watched); err != nil {
		return nil, fmt.Errorf("cannot share watches: %w", err)
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	//nolint:contextcheck // Events are written for as long as the connection lives.
	c.events = newEventWriter(c.ctx, writeEvents(dyn, o.requestTimeout), t.Guard(), dropped, log)
	return c, nil
}

// withoutCache makes the client of a cluster send each read to the API server, within a deadline.
func withoutCache(requestTimeout time.Duration) cluster.Option {
	return func(co *cluster.Options) {
		co.NewCache = func(*rest.Config, cache.Options) (cache.Cache, error) { return noCache{}, nil }
		co.NewClient = func(cfg *rest.Config, opts client.Options) (client.Client, error) {
			opts.Cache = nil
			c, err := client.NewWithWatch(cfg, opts)
			if err != nil {
				return nil, err
			}
			return multicluster.WithDeadlines(c, requestTimeout), nil
		}
	}
}

// panicFailure is the failure of a connection that was closed after a panic. The panic value is only logged, since it
// can contain text from the cluster.
func panicFailure() *condition.Error {
	return condition.NewError(fleetv1alpha1.ReasonPanicked, "The manager failed unexpectedly while it handled the cluster; see its log")
}

// lost returns why a connection that was not closed no longer works, or nil.
func (c *connected) lost() *condition.Error {
	if c.transport.Panicked() {
		return panicFailure()
	}
	return nil
}

// close ends everything that belongs to the connection. Its clients then return multicluster.ErrClusterNotConnected.
func (c *connected) close(cause error) {
	c.cancel(cause)
	c.transport.Close()
	c.replaced() // If it is given up before it has replaced anything.
}

// swapToken makes the next request use the new credentials, which differ only in the token.
func (c *connected) swapToken(creds *credentials.Credentials) {
	c.creds = creds
	c.transport.SetToken(creds.Token())
	c.transport.ClearUnauthorized()
}
