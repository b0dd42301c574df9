// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"time"

	"github.com/masthead-dev/masthead/pkg/kindwatch"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Options are shared by the instances of all clusters.
type Options struct {
	Clock clock.Clock

	// RequestTimeout bounds one request to a cluster.
	RequestTimeout time.Duration

	// linger and staleAfter are those of kindwatch.Options.
	Linger, StaleAfter time.Duration

	Assessor func() health.Assessor
	Packer   *record.Packer
	Recorder events.EventRecorder

	// Handler receives the events of a cluster. It must not block.
	Handler func(*Cluster, kindwatch.Event)
}

// New creates an instance of a cluster.
func New(
	name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request], o Options,
) (*Cluster, error) {
	watched, err := multicluster.WatchOptions(cl)
	if err != nil {
		return nil, fmt.Errorf("cannot create clients for cluster %q: %w", name, err)
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(cl.GetConfig(), cl.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for cluster %q: %w", name, err)
	}
	w := &Cluster{
		Name: name, Client: watched.Client, Metadata: watched.MetadataClient, queue: queue, Clock: o.Clock, requestTimeout: o.RequestTimeout,
		Guard:           watched.Guard,
		resolver:        kindwatch.NewResolver(kindwatch.ResolverOptions{Client: served, Account: watched.Account, Clock: o.Clock}),
		applications:    map[record.ApplicationKey]*Tracked{},
		byUID:           map[types.UID]record.ApplicationKey{},
		dependents:      map[record.ApplicationKey]sets.Set[record.ApplicationKey]{},
		users:           map[kindwatch.Kind]sets.Set[record.ApplicationKey]{},
		unansweredUntil: map[schema.GroupVersion]time.Time{},
		refusals:        map[ObjectKey]Refusal{},
		HealthChecks:    healthcheck.New(o.Clock),
		Wanted:          record.NewWantedMarks(o.Clock),
		Announcements:   appstatus.NewAnnouncements(o.Recorder, o.Clock),
	}
	watched.Clock, watched.Linger, watched.StaleAfter = o.Clock, o.Linger, o.StaleAfter
	watched.Handler = func(e kindwatch.Event) { o.Handler(w, e) }
	watched.Reduce = record.NewReducer(o.Assessor, &w.Texts, o.Packer, w.Wanted).Reduce
	watched.Generation = w.Wanted.Current
	if w.Watcher, err = kindwatch.New(watched); err != nil {
		return nil, fmt.Errorf("cannot watch cluster %q: %w", name, err)
	}
	return w, nil
}
