// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// controllerName is the name in logs and metrics of the controller that writes ClusterProfiles.
const controllerName = "inventory"

// Options of the controllers of this package.
type Options struct {
	// Fleet provides the clusters to publish.
	Fleet Fleet

	// Sources are queried before a profile is removed. A profile of any other source is kept.
	Sources []connection.EnrolmentGetter

	// Definitions are the refused definitions of clusters. Default: none.
	Definitions *Definitions

	// Clock provides the times in conditions and properties. Default: the real one.
	Clock clock.Clock

	// SkipNameValidation allows several managers in one process, in tests.
	SkipNameValidation *bool
}

// request names the cluster whose profile is to be reconciled. It is a struct so that logs and queues, which print
// requests, say what the name is of.
type request struct {
	Cluster mcr.ClusterName
}

// reconciler writes the ClusterProfile of one cluster at a time.
type reconciler struct {
	hub         client.Client
	fleet       Fleet
	sources     connection.EnrolmentGetters
	definitions *Definitions
	clock       clock.Clock
	recorder    events.EventRecorder

	// conflicts are the reported holders of the names of clusters' profiles.
	conflicts install.Latest[mcr.ClusterName, string]
}

// SetupWithManager adds to a hub's manager the controller that writes ClusterProfiles, and the one that writes the
// status of EnrollmentClasses. The hub must serve both kinds.
func SetupWithManager(mgr manager.Manager, o Options) error {
	if o.Fleet == nil || len(o.Sources) == 0 {
		return errors.New("the inventory needs a fleet and at least one source")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Definitions == nil {
		o.Definitions = &Definitions{}
	}
	if err := setupProfiles(mgr, o); err != nil {
		return fmt.Errorf("cannot set up the controller %q: %w", controllerName, err)
	}
	if err := setupClasses(mgr, o); err != nil {
		return fmt.Errorf("cannot set up the controller %q: %w", classControllerName, err)
	}
	return nil
}

func setupProfiles(mgr manager.Manager, o Options) error {
	r := &reconciler{
		hub:         mgr.GetClient(),
		fleet:       o.Fleet,
		sources:     connection.NewEnrolmentGetters(o.Sources),
		definitions: o.Definitions,
		clock:       o.Clock,
		recorder:    mgr.GetEventRecorder(fleetv1alpha1.FieldManager),
	}
	c, err := controller.NewTyped(controllerName, mgr, controller.TypedOptions[request]{
		Reconciler: r,
		// Each reconcile is at most two small writes to the hub, so a few workers keep up with a fleet that starts.
		MaxConcurrentReconciles: 5,
		SkipNameValidation:      o.SkipNameValidation,
		LogConstructor: func(req *request) logr.Logger {
			l := mgr.GetLogger().WithValues("controller", controllerName)
			if req != nil {
				l = l.WithValues("cluster", req.Cluster)
			}
			return l
		},
	})
	if err != nil {
		return err
	}
	if err := c.Watch(fleetSource(o.Fleet)); err != nil {
		return fmt.Errorf("cannot watch the fleet: %w", err)
	}
	if err := c.Watch(o.Definitions.source(o.Clock)); err != nil {
		return fmt.Errorf("cannot watch definitions: %w", err)
	}
	profiles := source.TypedKind(mgr.GetCache(), &inventoryv1alpha1.ClusterProfile{}, profileHandler())
	if err := c.Watch(profiles); err != nil {
		return fmt.Errorf("cannot watch ClusterProfiles: %w", err)
	}
	return nil
}

// fleetSource queues every cluster that exists, and each that changes. The fleet has no way to end a subscription, and
// needs none: a queue that is shut down accepts nothing.
func fleetSource(fleet Fleet) source.TypedSource[request] {
	return source.TypedFunc[request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[request]) error {
		fleet.Subscribe(func(name mcr.ClusterName) { q.Add(request{Cluster: name}) })
		for _, c := range fleet.List() {
			q.Add(request{Cluster: c.Name})
		}
		return nil
	})
}

// profileHandler queues the cluster that a profile describes, and the one whose profile's name it takes. An update that
// alters our marks queues the clusters of both its old and its new state.
func profileHandler() handler.TypedEventHandler[*inventoryv1alpha1.ClusterProfile, request] {
	type queue = workqueue.TypedRateLimitingInterface[request]
	type profile = *inventoryv1alpha1.ClusterProfile
	add := func(p profile, q queue) {
		if name, ok := clusterAffectedBy(p); ok {
			q.Add(request{Cluster: name})
		}
	}
	return handler.TypedFuncs[profile, request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[profile], q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[profile], q queue) {
			add(e.ObjectOld, q)
			add(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[profile], q queue) { add(e.Object, q) },
	}
}

// scope is what the reconciliation of one cluster's profile starts from.
type scope struct {
	name mcr.ClusterName
	key  connection.Key

	// profile is the one with the cluster's name, ours or not; nil if there is none.
	profile *inventoryv1alpha1.ClusterProfile

	// cluster is the enrolled cluster. One that is not enrolled may have left only if mayLeave says so.
	cluster            connection.Cluster
	enrolled, mayLeave bool
}

func (r *reconciler) newScope(ctx context.Context, name mcr.ClusterName) (*scope, error) {
	key, ok := connection.ParseClusterName(name)
	if !ok {
		return nil, reconcile.TerminalError(fmt.Errorf("%q is not the name of a cluster", name))
	}
	s := &scope{name: name, key: key}
	var profile inventoryv1alpha1.ClusterProfile
	err := r.hub.Get(ctx, key.Published(), &profile)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot get ClusterProfile %q: %w", key.Published(), err)
	}
	if err == nil {
		s.profile = &profile
	}
	s.mayLeave = r.fleet.MayLeave(name) // Before Lookup.
	s.cluster, s.enrolled = r.fleet.Lookup(name)
	return s, nil
}

// Reconcile updates the ClusterProfile of one cluster.
func (r *reconciler) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	s, err := r.newScope(ctx, req.Cluster)
	switch {
	case err != nil:
	case !s.enrolled && s.mayLeave:
		// The profile is the record that it has to be.
		err = condition.PendingError{After: condition.Soon}
	case !s.enrolled:
		err = r.remove(ctx, s)
	case s.profile != nil && !isOurs(s.profile):
		r.reportConflict(ctx, s.cluster, s.profile)
	default:
		r.reportRelease(s.cluster)
		err = r.publish(ctx, s)
	}
	if apierrors.IsConflict(err) {
		// A client, maybe Masthead, wrote in between, so the cache will be updated; this is not a failure worth logging.
		err = condition.PendingError{After: condition.Soon}
	}
	return condition.Result(err)
}

// publish writes only what differs. While there is more to publish, it is pending.
func (r *reconciler) publish(ctx context.Context, s *scope) error {
	at, existing := s.key.Published(), s.profile
	desired := desiredMetadata(s.key, s.cluster)
	if existing == nil && s.cluster.Unenrolled {
		// Its owner may be gone. Kubernetes garbage-collects objects of such an owner at once, so both would loop until the
		// cluster is disconnected.
		return nil
	}
	if existing == nil {
		// This is not forced: if another client created it in between, the API server refuses, and the cache soon has it. The
		// status follows once the cache has the profile: written from here it would be written twice, since the cache first
		// receives the profile without it.
		return r.apply(ctx, at, applyMetadata(desired, ""))
	}
	generation, version := existing.Generation, existing.ResourceVersion
	if metadataDiffers(existing, desired) {
		// Ours was altered, and is reverted; its UID ensures that it is still the one that was read.
		u := applyMetadata(desired, existing.UID)
		if err := r.apply(ctx, at, u, client.ForceOwnership); err != nil {
			return err
		}
		generation, version = u.GetGeneration(), u.GetResourceVersion()
	}

	now := r.clock.Now()
	refused, again := r.definitions.toPublish(s.name, now)
	var more error
	if again > 0 {
		more = condition.PendingError{After: again}
	}
	status := desiredStatus(s.key, s.cluster, refused, existing, generation, now)
	if !statusDiffers(existing, status) {
		return more
	}
	u := applyStatus(at, existing.UID, version, status)
	err := r.hub.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(fleetv1alpha1.FieldManager), client.ForceOwnership)
	if apierrors.IsNotFound(err) {
		// It was deleted in between. The watch reports that, and it is recreated.
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot apply the status of ClusterProfile %q: %w", at, err)
	}
	return more
}

func (r *reconciler) apply(
	ctx context.Context, at types.NamespacedName, u *unstructured.Unstructured, options ...client.ApplyOption,
) error {
	options = append(options, client.FieldOwner(fleetv1alpha1.FieldManager))
	if err := r.hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...); err != nil {
		return fmt.Errorf("cannot apply ClusterProfile %q: %w", at, err)
	}
	return nil
}

// remove removes the profile of a cluster that is not in the fleet, if it is ours and the cluster's source confirms
// that the cluster is no longer enrolled.
func (r *reconciler) remove(ctx context.Context, s *scope) error {
	existing := s.profile
	r.conflicts.Set(s.name, "")
	if left, err := r.sources.HasLeft(ctx, s.key); err != nil || !left {
		return err
	}
	r.definitions.forgetCluster(s.name)
	if existing == nil || !existing.DeletionTimestamp.IsZero() {
		return nil
	}
	if about, ok := parseClusterName(existing); !ok || about != s.name {
		return nil
	}
	// The preconditions ensure that the deleted object is the one that was read.
	err := r.hub.Delete(ctx, existing, client.Preconditions{
		UID: &existing.UID, ResourceVersion: &existing.ResourceVersion,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // Another client was faster; the watch reports the current state.
	}
	if err != nil {
		return fmt.Errorf("cannot delete ClusterProfile %q: %w", client.ObjectKeyFromObject(existing), err)
	}
	log.FromContext(ctx).Info("Removed the ClusterProfile of a cluster that is no longer enrolled",
		"namespace", existing.Namespace, "name", existing.Name)
	return nil
}

// reportConflict reports, once for each holder, that the profile's name is taken.
func (r *reconciler) reportConflict(
	ctx context.Context, cluster connection.Cluster, holder *inventoryv1alpha1.ClusterProfile,
) {
	manager := condition.Text(holder.Spec.ClusterManager.Name, maxVersionLength)
	if !r.conflicts.Set(cluster.Name, string(holder.UID)+"/"+manager) {
		return
	}
	whose := fmt.Sprintf("belongs to cluster manager %q", manager)
	if manager == fleetv1alpha1.FieldManager {
		whose = fmt.Sprintf("does not have the label %s=%s", inventoryv1alpha1.LabelClusterManagerKey, fleetv1alpha1.FieldManager)
	}
	r.recorder.Eventf(enrolledObject(cluster), nil, corev1.EventTypeWarning, fleetv1alpha1.EventClusterProfileConflict, "Publish",
		"ClusterProfile %q %s and is left unchanged; what it reports about this cluster is not from Masthead", holder.Name, whose)
	log.FromContext(ctx).Info("Not publishing the cluster, the name of its ClusterProfile is taken",
		"namespace", holder.Namespace, "name", holder.Name, "clusterManager", manager)
}

// reportRelease reports that a taken name is free.
func (r *reconciler) reportRelease(cluster connection.Cluster) {
	if r.conflicts.Set(cluster.Name, "") {
		r.recorder.Eventf(enrolledObject(cluster), nil, corev1.EventTypeNormal, fleetv1alpha1.EventClusterProfileReleased, "Publish",
			"The name of the ClusterProfile is free; this cluster is in the inventory")
	}
}

// enrolledObject is what events about a cluster are attached to.
func enrolledObject(cluster connection.Cluster) *metav1.PartialObjectMetadata {
	o := cluster.Enrolment.Object
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: o.GroupVersion().String(), Kind: o.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID},
	}
}
