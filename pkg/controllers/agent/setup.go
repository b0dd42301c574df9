// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// definitionControllerName is the name of the controller of definitions, in metrics, logs and events.
const definitionControllerName = "agent-definitions"

// reconcileTimeout ends a reconcile that hangs.
const reconcileTimeout = time.Minute

// agent connects the two controllers, the hub and the workload clusters.
type agent struct {
	hub          *index.Hub
	workloads    *index.Clusters
	fleet        index.Fleet
	definitions  *definition.Reconciler
	requirements *requirementReconciler
	metrics      *downstream.Metrics

	// enrolments is the last known enrolment of each cluster, as far as it affects claims.
	enrolments install.Latest[mcr.ClusterName, enrolment]
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
	if err := mgr.GetLocalManager().Add(manager.RunnableFunc(a.hub.Watcher.Start)); err != nil {
		return nil, fmt.Errorf("cannot add the watches of the hub to the manager: %w", err)
	}
	o.Fleet.Subscribe(a.enrolmentChanged)
	o.Fleet.OnOffboard(a.offboard)
	return a, nil
}

func newAgent(mgr mcmanager.Manager, o Options) (*agent, error) {
	local := mgr.GetLocalManager()
	a := &agent{fleet: o.Fleet, metrics: downstream.New(o.Registerer)}
	a.workloads = index.NewClusters(index.ClustersOptions{
		Engaged: a.engaged, Disengaged: a.disengaged, Queued: func(w *index.Cluster) { a.hub.EnqueueDefinitions(w) },
		Handle: a.handleWorkload, Identify: a.identify, Fleet: o.Fleet,
	})
	a.hub = index.NewHub(o.Fleet, a.workloads, &multicluster.EventQueue[multicluster.ObjectRequest]{}, &multicluster.EventQueue[mcreconcile.Request]{})
	a.hub.Clock = o.Clock

	watched, err := multicluster.WatchOptions(local)
	if err != nil {
		return nil, fmt.Errorf("cannot create clients for the hub: %w", err)
	}
	// No kind of the hub is dropped for its size: what is kept of each object is limited instead.
	watched.Handler, watched.PerKind, watched.Total = a.hub.Handle, kindwatch.Unlimited, kindwatch.Unlimited
	watched.Keep = a.hub.Kept.Keep
	a.hub.Kept.Limit(o.HubBudget)
	if a.hub.Watcher, err = kindwatch.New(watched); err != nil {
		return nil, fmt.Errorf("cannot watch the hub: %w", err)
	}
	a.hub.Watcher.Set(index.OwnerFixed, crossplane.XRDKind, crossplane.HubCRDKind, crossplane.HubSecretKind)
	index.RegisterOrphans(o.Registerer, a.hub)
	index.RegisterMemory(o.Registerer, a.hub)

	a.requirements = (&requirementReconciler{
		hub: a.hub, workloads: a.workloads, fleet: o.Fleet, classes: local.GetClient(),
		identities: hubaccess.New(local, o.Clock, o.CredentialsPoll, o.CredentialsRetry),
		clock:      o.Clock, protected: o.ProtectedNamespaces, metrics: a.metrics,
	}).complete(o.FirstStatusPatience, o.InFlightGrace)
	a.hub.Changed = a.requirements.hubChanged
	hubaccess.RegisterMetrics(o.Registerer, a.requirements.identities)
	index.RegisterClaims(o.Registerer, a.requirements.ledger)
	a.definitions = definition.New(definition.Options{
		Hub: a.hub, Workloads: a.workloads, Fleet: o.Fleet,
		Classes: local.GetClient(), HubReader: local.GetAPIReader(),
		Recorder: local.GetEventRecorder(index.ControllerName),
		Reporter: o.Reporter, Metrics: a.metrics, Clock: o.Clock, Grace: o.WithdrawalGrace, Users: o.Users,
		KindGone: a.requirements.forgetKind,
	})
	return a, nil
}

func (a *agent) addDefinitionController(mgr mcmanager.Manager, o Options) error {
	c, err := multicluster.NewController(definitionControllerName, mgr, multicluster.ControllerOptions[mcreconcile.Request]{
		Reconciler: a.definitions, Gate: o.Gate,
		MaxConcurrentReconciles: o.MaxConcurrentReconciles, MaxInFlightPerCluster: o.MaxInFlightPerCluster,
		ReconciliationTimeout: reconcileTimeout, Metrics: o.QueueMetrics, SkipNameValidation: o.SkipNameValidation,
	})
	if err != nil {
		return fmt.Errorf("cannot create the controller %q: %w", definitionControllerName, err)
	}
	if err := c.Watch(a.hub.Definitions); err != nil {
		return fmt.Errorf("cannot watch for definitions: %w", err)
	}
	classes := connection.ClassSource(mgr.GetLocalManager().GetCache(), o.Fleet, func(name mcr.ClusterName, _ connection.ClassQueue) { a.enqueueCluster(name) })
	if err := c.Watch(classes); err != nil {
		return fmt.Errorf("cannot watch EnrollmentClasses: %w", err)
	}
	return nil
}

func (a *agent) addRequirementController(mgr mcmanager.Manager, o Options) error {
	c, err := multicluster.NewController(index.ControllerName, mgr, multicluster.ControllerOptions[multicluster.ObjectRequest]{
		Reconciler: a.requirements, Clusters: a.workloads, Gate: o.Gate,
		MaxConcurrentReconciles: o.MaxConcurrentReconciles, MaxInFlightPerCluster: o.MaxInFlightPerCluster,
		ReconciliationTimeout: reconcileTimeout, Metrics: o.QueueMetrics, SkipNameValidation: o.SkipNameValidation,
	})
	if err != nil {
		return fmt.Errorf("cannot create the controller %q: %w", index.ControllerName, err)
	}
	if err := c.Watch(a.hub.Requirements); err != nil {
		return fmt.Errorf("cannot watch the hub: %w", err)
	}
	local := mgr.GetLocalManager()
	namespaces := crsource.TypedKind(local.GetCache(), index.NamespaceMetadata(), a.hubNamespaceHandler(local.GetClient()))
	if err := c.Watch(namespaces); err != nil {
		return fmt.Errorf("cannot watch the namespaces of the hub: %w", err)
	}
	return nil
}

// enrolmentChanged is called on every change of every cluster. Most concern its connection.
func (a *agent) enrolmentChanged(name mcr.ClusterName) {
	before, now := a.enrolments.Update(name, func(before enrolment) enrolment {
		c, _ := a.fleet.Lookup(name)
		now := enrolment{class: c.Enrolment.Class, identifier: c.EffectiveIdentifier()}
		if before.identifier != "" && before.identifier != now.identifier {
			a.hub.Kept.ReduceSource(before.identifier)
		}
		return now
	})
	if before != now && now != (enrolment{}) {
		a.enqueueCluster(name)
	}
}

func (a *agent) engaged(w *index.Cluster) { a.hub.Want(w.Name, w.HubKinds()...) }

func (a *agent) disengaged(name mcr.ClusterName) {
	a.hub.Want(name)
	a.definitions.Forget(name)
	a.requirements.forgetCluster(name)
}

// identify returns the cluster that a name currently identifies.
func (a *agent) identify(name mcr.ClusterName) index.Identity {
	c, _ := a.fleet.Lookup(name)
	return index.Identity{Object: c.Enrolment.Object.UID, Cluster: c.UID}
}
