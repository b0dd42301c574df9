// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/readonlypolicy"
)

// Names of the controllers, in metrics, logs and events.
const (
	definitionControllerName = "agent-definitions"
)

// Defaults of Options.
const (
	DefaultMaxConcurrentReconciles = 32
	DefaultReconciliationTimeout   = time.Minute
	DefaultFirstStatusPatience     = 2 * time.Second
	DefaultInFlightGrace           = 10 * time.Second
	DefaultCredentialsPoll         = 45 * time.Second
	DefaultCredentialsRetry        = 10 * time.Second
)

// Options configure the agent.
type Options struct {
	// Fleet says which clusters are enrolled, and how. Required.
	Fleet Fleet

	// Gate is the gate that the provider of clusters turns.
	Gate *multicluster.Gate

	// Users are as whom the clusters know Masthead, which the policy in them lets through. Default: that is never in doubt.
	Users *readonlypolicy.Users

	// Reporter is told about the definitions of claim kinds in the workload clusters.
	Reporter DefinitionReporter

	// ProtectedNamespaces of the hub are never the target of a claim, in addition to kube-*. They are those of the
	// manager and of Crossplane.
	ProtectedNamespaces []string

	// MaxConcurrentReconciles and MaxInFlightPerCluster bound how many claims are worked on at once.
	MaxConcurrentReconciles int
	MaxInFlightPerCluster   int

	// ReconciliationTimeout ends a reconcile that hangs.
	ReconciliationTimeout time.Duration

	// FirstStatusPatience is how long the condition AgentSynced of a new claim waits for the hub's first status, so that
	// both are one write.
	FirstStatusPatience time.Duration

	// InFlightGrace is how long a creation in the hub may still be carried out after its sender has been killed or has given
	// it up. For as long after a start, a claim for which nothing is found in the hub is not let go.
	InFlightGrace time.Duration

	// WithdrawalGrace is how long a definition that is not offered any more, and has no objects, refuses new ones before it is
	// removed from a workload cluster.
	WithdrawalGrace time.Duration

	// CredentialsPoll is how long credentials from a workload cluster are used before they are read again, and
	// CredentialsRetry how long those are left alone that cannot be used.
	CredentialsPoll, CredentialsRetry time.Duration

	// Clock is the real one by default.
	Clock clock.PassiveClock

	// Registerer takes the metrics; nil publishes none. QueueMetrics are those of the queues.
	Registerer   prometheus.Registerer
	QueueMetrics *multicluster.Metrics

	// SkipNameValidation allows two agents in one process, which only tests need.
	SkipNameValidation *bool
}

func (o *Options) setDefaults() error {
	if o.Fleet == nil {
		return errors.New("the agent needs to know the fleet")
	}
	if o.Users == nil {
		o.Users = &readonlypolicy.Users{}
	}
	if o.Reporter == nil {
		o.Reporter = nopReporter{}
	}
	if o.MaxConcurrentReconciles <= 0 {
		o.MaxConcurrentReconciles = DefaultMaxConcurrentReconciles
	}
	if o.ReconciliationTimeout <= 0 {
		o.ReconciliationTimeout = DefaultReconciliationTimeout
	}
	if o.FirstStatusPatience <= 0 {
		o.FirstStatusPatience = DefaultFirstStatusPatience
	}
	if o.InFlightGrace <= 0 {
		o.InFlightGrace = DefaultInFlightGrace
	}
	if o.WithdrawalGrace <= 0 {
		o.WithdrawalGrace = DefaultWithdrawalGrace
	}
	if o.CredentialsPoll <= 0 {
		o.CredentialsPoll = DefaultCredentialsPoll
	}
	if o.CredentialsRetry <= 0 {
		o.CredentialsRetry = DefaultCredentialsRetry
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}

// agent is what ties the two controllers, the hub and the workload clusters together.
type agent struct {
	hub          *hub
	workloads    *workloads
	fleet        Fleet
	definitions  *definitionReconciler
	requirements *requirementReconciler
	metrics      *Metrics

	mu sync.Mutex
	// enrolments is what was last known about each cluster that matters to its claims.
	enrolments map[mcr.ClusterName]enrolment
}

type enrolment struct{ class, identifier string }

// Setup adds the agent to a manager.
func Setup(mgr mcmanager.Manager, o Options) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	_, err := setup(mgr, o)
	return err
}

func setup(mgr mcmanager.Manager, o Options) (*agent, error) {
	a, err := newAgent(mgr, o)
	if err != nil {
		return nil, err
	}
	if err := a.addDefinitionController(mgr, o); err != nil {
		return nil, err
	}
	if err := a.addRequirementController(mgr, o); err != nil {
		return nil, err
	}
	if err := mgr.GetLocalManager().Add(manager.RunnableFunc(a.hub.watcher.Start)); err != nil {
		return nil, fmt.Errorf("cannot add the watches of the hub to the manager: %w", err)
	}
	o.Fleet.Subscribe(a.enrolmentChanged)
	o.Fleet.OnLeave(a.leave)
	return a, nil
}

func newAgent(mgr mcmanager.Manager, o Options) (*agent, error) {
	local := mgr.GetLocalManager()
	a := &agent{fleet: o.Fleet, enrolments: map[mcr.ClusterName]enrolment{}}
	if o.Registerer != nil {
		a.metrics = NewMetrics(o.Registerer)
	}
	a.workloads = newWorkloads(workloadOptions{
		engaged: a.engaged, disengaged: a.disengaged, queued: func(w *workload) { a.hub.enqueueDefinitions(w) },
		handle: a.handleWorkload, identify: a.identify, fleet: o.Fleet,
	})
	a.hub = newHub(o.Fleet, a.workloads, &enqueuer[Request]{}, &enqueuer[mcreconcile.Request]{})

	watched, err := multicluster.WatchOptions(local)
	if err != nil {
		return nil, fmt.Errorf("cannot make clients for the hub: %w", err)
	}
	// What is in the hub is the administrator's, or was counted against the budget of the cluster from which it came.
	watched.Handler, watched.PerKind, watched.Total = a.hub.handle, kindwatch.Unlimited, kindwatch.Unlimited
	if a.hub.watcher, err = kindwatch.New(watched); err != nil {
		return nil, fmt.Errorf("cannot watch the hub: %w", err)
	}
	a.hub.watcher.Set(ownerFixed, xrdKind, hubCRDKind, hubSecretKind)
	if o.Registerer != nil {
		o.Registerer.MustRegister(newOrphans(a.hub))
	}

	a.requirements = newRequirementReconciler(requirementOptions{
		hub: a.hub, workloads: a.workloads, fleet: o.Fleet, classes: local.GetClient(),
		identities: newIdentities(local, o.Clock, o.CredentialsPoll, o.CredentialsRetry),
		clock:      o.Clock, protected: o.ProtectedNamespaces, patience: o.FirstStatusPatience, inFlightGrace: o.InFlightGrace, metrics: a.metrics,
	})
	a.definitions = newDefinitionReconciler(definitionOptions{
		hub: a.hub, workloads: a.workloads, fleet: o.Fleet,
		classes: local.GetClient(), hubReader: local.GetAPIReader(),
		recorder: local.GetEventRecorder(controllerName),
		reporter: o.Reporter, metrics: a.metrics, clock: o.Clock, grace: o.WithdrawalGrace, users: o.Users,
		kindGone: a.requirements.forgetKind,
	})
	return a, nil
}

func (a *agent) addDefinitionController(mgr mcmanager.Manager, o Options) error {
	c, err := multicluster.NewController(definitionControllerName, mgr, multicluster.ControllerOptions[mcreconcile.Request]{
		Reconciler: a.definitions, Gate: o.Gate,
		MaxConcurrentReconciles: o.MaxConcurrentReconciles, MaxInFlightPerCluster: o.MaxInFlightPerCluster,
		ReconciliationTimeout: o.ReconciliationTimeout, Metrics: o.QueueMetrics, SkipNameValidation: o.SkipNameValidation,
	})
	if err != nil {
		return fmt.Errorf("cannot make the controller %q: %w", definitionControllerName, err)
	}
	if err := c.Watch(a.hub.definitions); err != nil {
		return fmt.Errorf("cannot watch for definitions: %w", err)
	}
	classes := connection.ClassSource(mgr.GetLocalManager().GetCache(), o.Fleet, func(name mcr.ClusterName, _ connection.ClassQueue) { a.enqueueCluster(name) })
	if err := c.Watch(classes); err != nil {
		return fmt.Errorf("cannot watch EnrollmentClasses: %w", err)
	}
	return nil
}

func (a *agent) addRequirementController(mgr mcmanager.Manager, o Options) error {
	c, err := multicluster.NewController(controllerName, mgr, multicluster.ControllerOptions[Request]{
		Reconciler: a.requirements, Gate: o.Gate,
		MaxConcurrentReconciles: o.MaxConcurrentReconciles, MaxInFlightPerCluster: o.MaxInFlightPerCluster,
		ReconciliationTimeout: o.ReconciliationTimeout, Metrics: o.QueueMetrics, SkipNameValidation: o.SkipNameValidation,
	})
	if err != nil {
		return fmt.Errorf("cannot make the controller %q: %w", controllerName, err)
	}
	if err := c.Watch(a.hub.requirements); err != nil {
		return fmt.Errorf("cannot watch the hub: %w", err)
	}
	local := mgr.GetLocalManager()
	namespaces := crsource.TypedKind(local.GetCache(), namespaceMetadata(), a.hubNamespaceHandler(local.GetClient()))
	if err := c.Watch(namespaces); err != nil {
		return fmt.Errorf("cannot watch the namespaces of the hub: %w", err)
	}
	if err := c.MultiClusterWatch(a.workloads); err != nil {
		return fmt.Errorf("cannot watch workload clusters: %w", err)
	}
	return nil
}

// enrolmentChanged is told about every change of every cluster. Most are about its connection.
func (a *agent) enrolmentChanged(name mcr.ClusterName) {
	if a.noteEnrolment(name) {
		a.enqueueCluster(name)
	}
}

// noteEnrolment notes how a cluster is enrolled now, and says whether that is news. Of two at once, the one that notes last has looked
// last.
func (a *agent) noteEnrolment(name mcr.ClusterName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.fleet.Lookup(name)
	now := enrolment{class: c.Enrolment.Class, identifier: c.EffectiveIdentifier()}
	before, known := a.enrolments[name]
	if !ok {
		delete(a.enrolments, name)
		return false
	}
	a.enrolments[name] = now
	return !known || before != now
}

// enqueueCluster queues everything in a cluster.
func (a *agent) enqueueCluster(name mcr.ClusterName) {
	w, ok := a.workloads.get(name)
	if !ok {
		return
	}
	a.hub.enqueueDefinitions(w)
	a.enqueueClaims(w)
}

func (a *agent) enqueueClaims(w *workload) {
	for _, kind := range w.claimKinds() {
		a.hub.enqueueKind(w, kind.GroupResource(), a.hub.requirements.addInitial)
	}
}

func (a *agent) engaged(w *workload) { a.hub.want(w.name, w.hubKinds()...) }

func (a *agent) disengaged(name mcr.ClusterName) {
	a.hub.want(name)
	a.definitions.forget(name)
	a.requirements.forgetCluster(name)
}

// identify says which cluster a name leads to now.
func (a *agent) identify(name mcr.ClusterName) identity {
	c, _ := a.fleet.Lookup(name)
	return identity{object: c.Enrolment.Object.UID, cluster: c.UID}
}

// handleWorkload is the handler of the watcher of a workload cluster.
func (a *agent) handleWorkload(w *workload, e kindwatch.Event) {
	if !a.workloads.current(w) {
		return
	}
	switch e.Kind {
	case ownedCRDKind:
		if e.Type == kindwatch.StateChanged {
			a.hub.enqueueDefinitions(w)
			return
		}
		w.watcher.Poke(schema.ParseGroupResource(e.Object.GetName()))
		a.hub.definitions.add(definitionRequest(w.name, e.Object.GetName()))
	case namespaceKind:
		a.handleNamespace(w, e)
	case ownedSecretKind:
		if e.Type == kindwatch.StateChanged {
			a.enqueueClaims(w)
			return
		}
		a.handleOwnedSecret(w, e)
	default:
		if w.isAwaited(e.Kind) {
			a.handleAwaitedSecret(w, e)
			return
		}
		if e.Type == kindwatch.StateChanged {
			a.hub.definitions.add(definitionRequest(w.name, e.Kind.GroupResource().String()))
			return
		}
		add := a.hub.requirements.add
		if e.Initial {
			add = a.hub.requirements.addInitial
		}
		if crd := e.Kind.GroupResource().String(); !e.Initial && e.Type != kindwatch.Updated && w.isUnoffered(crd) {
			a.hub.definitions.add(definitionRequest(w.name, crd))
		}
		req := w.request(e.Kind, e.Object)
		if vanished(e, w.owner()) {
			a.requirements.vanish(req, e.Object)
		}
		// What a reconcile wrote, it went on with.
		if !e.Echo {
			add(req)
		}
	}
}

// handleOwnedSecret finds the claim whose connection Secret changed in a workload cluster.
func (a *agent) handleOwnedSecret(w *workload, e kindwatch.Event) {
	key := types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}
	w.trackCopy(e)
	if e.Type == kindwatch.Deleted {
		w.forgetSecret(key)
	}
	if e.Initial || e.Type != kindwatch.Deleted && w.wroteVersion(key) == e.Object.GetResourceVersion() {
		return
	}
	owner := metav1.GetControllerOfNoCopy(e.Object)
	if owner == nil && e.Old != nil {
		owner = metav1.GetControllerOfNoCopy(e.Old)
	}
	if owner == nil {
		return
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return
	}
	for _, kind := range w.claimKinds() {
		if kind.Group == gv.Group && kind.Kind == owner.Kind {
			a.hub.requirements.add(Request{
				ClusterName: w.name, Kind: kind,
				NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: owner.Name},
			})
		}
	}
}
