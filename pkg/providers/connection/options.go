// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	clienttransport "k8s.io/client-go/transport"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// An EventRecorder writes events on enrolled objects; the recorder that a manager's GetEventRecorder returns is one.
type EventRecorder interface {
	Eventf(regarding runtime.Object, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// Options of a Provider. Sources and Gate are required, everything else has a default.
type Options struct {
	// Sources define which clusters exist. Their names are unique.
	Sources []Source
	// Gate controls which clusters' queued work may run.
	Gate Gate
	// Pins remembers across restarts which cluster an enrolment led to. Nil: first come, first served after each start.
	Pins Pins
	// RequireClass holds enrolments whose EnrollmentClass does not exist or does not allow their namespace. The hub must
	// serve EnrollmentClasses, and the scheme of the hub's client must know them; the metadata of the hub's Namespaces is
	// watched.
	RequireClass bool
	// HubUID is the UID of the hub's namespace kube-system, which identifies the hub itself. Default: read from the hub at
	// start.
	HubUID string

	// Hub identifies this hub to workload clusters. A cluster that belongs to another hub is refused. Without an identity,
	// clusters are neither claimed nor refused.
	Hub hubidentity.Hub
	// HubInterval is the interval for checking that a cluster still belongs to this hub, and between attempts to connect
	// to one that belongs to another. Default 30 s.
	HubInterval time.Duration

	// Credentials restrict what kubeconfigs may contain.
	Credentials credentials.Options
	// Scheme of the clients of workload clusters. Default: client-go's.
	Scheme *runtime.Scheme

	// Recorder writes events on the enrolled objects when the state of their connection changes. Default: none.
	Recorder EventRecorder
	// Registerer registers the metrics. Default: none, metrics are counted but not exposed.
	Registerer prometheus.Registerer
	// Clock is the time source. Default: the real clock.
	Clock clock.PassiveClock
	// Random returns numbers in [0, 1) for jitter. It is called concurrently. Default: math/rand.
	Random func() float64

	// MaxConcurrentReconciles is how many clusters that have not failed yet may be tried at once; at least 50. As many
	// connections are probed at once. Of clusters that failed before, half as many are retried at once, and half as many
	// are probed. These limits are separate. Default 100.
	MaxConcurrentReconciles int
	// MaxPerNamespace is how many of these may belong to one namespace of the hub, so that a tenant with unresponsive
	// clusters does not block others. The same share applies to the other limits. Default half.
	MaxPerNamespace int
	// ProbeInterval is the time between two health probes of a cluster. Default 10 s.
	ProbeInterval time.Duration
	// ProbeTimeout is how long one request of a probe may take. A whole probe may take twice as long. Default 5 s.
	ProbeTimeout time.Duration
	// ProbeFailureThreshold is how many probes in a row fail before a cluster is disengaged. Default 5.
	ProbeFailureThreshold int
	// UnsyncedAfter is how long a kind of a connected cluster may stay unsynced before it is reported. Default 2 min.
	UnsyncedAfter time.Duration
	// ConnectTimeout is how long one attempt to connect may take in all. Default 20 s.
	ConnectTimeout time.Duration
	// BackoffBase and BackoffMax bound the exponential back-off between attempts to connect. Default 1 s and 5 min.
	BackoffBase, BackoffMax time.Duration
	// SettlePeriod is how long a connection must last to reset the back-off. If it is lost earlier, the back-off keeps
	// growing. Default 2 min.
	SettlePeriod time.Duration
	// NotReadyGracePeriod is how long a connected cluster is kept while its source reports that it is not ready or its
	// Secret is gone. Default 5 min.
	NotReadyGracePeriod time.Duration
	// DrainTimeout is how long running work may continue before a cluster is disengaged. Default 30 s.
	DrainTimeout time.Duration
	// OffboardTimeout is how long offboarding an un-enrolled cluster may take. Default 5 min.
	OffboardTimeout time.Duration
	// HandoverTimeout is how long an old connection is kept until its successor's caches are synced. Default 30 s.
	HandoverTimeout time.Duration
	// RequestTimeout is the deadline of each request that is not a watch. Default 10 s.
	RequestTimeout time.Duration
	// QPS and Burst limit the requests to one cluster, over all clients. Default 1000 and 2000: more than normal work
	// needs, so only a defect reaches them. The API server's own API Priority and Fairness knows how much load it can
	// take, which the client does not; a low limit here only delays claims.
	QPS   float32
	Burst int
	// Limits restrict how much of an API server's responses is read.
	Limits transport.Limits
	// Budget is charged with kept objects of the clusters and with responses in flight, see package limits. Default: none.
	Budget *limits.Budget
	// Lists limits how many kinds are listed at once in all workload clusters. Default: no limit.
	Lists *limits.Semaphore[any]
	// WrapTransport wraps what sends requests to a workload cluster: those of clients and of probes, with their
	// credentials. It is called once for each connection. Default: none.
	WrapTransport clienttransport.WrapperFunc
	// UserAgent is sent with each request. Default "masthead".
	UserAgent string
}

func (o Options) withDefaults() (Options, error) {
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.UserAgent == "" {
		o.UserAgent = DefaultUserAgent
	}
	if o.QPS == 0 {
		o.QPS = DefaultQPS
	}
	o.Limits = o.Limits.WithDefaults()
	setDefault(&o.Burst, DefaultBurst)
	setDefault(&o.MaxConcurrentReconciles, DefaultMaxConcurrentReconciles)
	setDefault(&o.MaxPerNamespace, (o.MaxConcurrentReconciles+1)/2)
	setDefault(&o.ProbeInterval, DefaultProbeInterval)
	setDefault(&o.ProbeTimeout, DefaultProbeTimeout)
	setDefault(&o.ProbeFailureThreshold, DefaultProbeFailureThreshold)
	setDefault(&o.UnsyncedAfter, DefaultUnsyncedAfter)
	setDefault(&o.ConnectTimeout, DefaultConnectTimeout)
	setDefault(&o.BackoffBase, DefaultBackoffBase)
	setDefault(&o.BackoffMax, DefaultBackoffMax)
	setDefault(&o.SettlePeriod, DefaultSettlePeriod)
	setDefault(&o.NotReadyGracePeriod, DefaultNotReadyGracePeriod)
	setDefault(&o.DrainTimeout, DefaultDrainTimeout)
	setDefault(&o.OffboardTimeout, DefaultOffboardTimeout)
	setDefault(&o.HandoverTimeout, DefaultHandoverTimeout)
	setDefault(&o.HubInterval, DefaultHubInterval)
	setDefault(&o.RequestTimeout, DefaultRequestTimeout)
	return o, o.validate()
}

func (o Options) validate() error {
	if len(o.Sources) == 0 {
		return errors.New("at least one source is required")
	}
	names := map[string]bool{}
	for _, s := range o.Sources {
		n := s.Name()
		if n == "" || strings.Contains(n, "/") || names[n] {
			return fmt.Errorf("source name %q is empty, holds a slash or is used twice", n)
		}
		names[n] = true
	}
	switch {
	case o.Gate == nil:
		return errors.New("a gate is required")
	case o.MaxConcurrentReconciles < minConcurrentReconciles:
		return fmt.Errorf("at least %d clusters must be reconciled at once, not %d", minConcurrentReconciles, o.MaxConcurrentReconciles)
	case o.QPS < 0:
		return errors.New("the limit of requests per second must be positive")
	case o.BackoffMax < o.BackoffBase:
		return errors.New("the longest back-off must not be shorter than the first")
	}
	return nil
}

// minConcurrentReconciles leaves room for live clusters while dead ones time out.
const minConcurrentReconciles = 50

func setDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
