// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/readonlypolicy"
)

// definitionReconciler keeps the definitions of the published claim kinds in the workload clusters as they are in the hub,
// and thereby decides which kinds of claims are synchronised in which cluster.
type definitionReconciler struct {
	hub       *view.Hub
	workloads *view.Clusters
	fleet     view.Fleet
	classes   client.Reader
	hubReader client.Reader
	recorder  events.EventRecorder
	reporter  DefinitionReporter
	metrics   *Metrics

	clock clock.PassiveClock

	// users are as whom the clusters know Masthead.
	users *readonlypolicy.Users

	// grace is how long a definition that is not offered any more is closed before it is deleted.
	grace time.Duration

	// kindGone is called when the claims of a kind are not followed any more in a cluster.
	kindGone func(mcr.ClusterName, kindwatch.Kind)

	mu sync.Mutex
	// wanted are the definitions that the hub's ones lead to, read once for all clusters.
	wanted map[string]wantedDefinition

	// refused is the reason that was last told about a definition that could not be put into a cluster.
	refused map[mcreconcile.Request]string
}

// definitionOptions are what the reconciler needs; its fields of the same names say what they are.
type definitionOptions struct {
	hub       *view.Hub
	workloads *view.Clusters
	fleet     view.Fleet
	classes   client.Reader
	hubReader client.Reader
	recorder  events.EventRecorder
	reporter  DefinitionReporter
	metrics   *Metrics
	clock     clock.PassiveClock
	users     *readonlypolicy.Users
	grace     time.Duration
	kindGone  func(mcr.ClusterName, kindwatch.Kind)
}

func newDefinitionReconciler(o definitionOptions) *definitionReconciler {
	return &definitionReconciler{
		hub: o.hub, workloads: o.workloads, fleet: o.fleet, classes: o.classes, hubReader: o.hubReader, recorder: o.recorder,
		reporter: o.reporter, metrics: o.metrics, clock: o.clock, users: o.users, grace: o.grace, kindGone: o.kindGone,
		wanted: map[string]wantedDefinition{}, refused: map[mcreconcile.Request]string{},
	}
}

// wantedDefinition is what all workload clusters shall have for one state of a definition of the hub.
type wantedDefinition struct {
	of   view.VerifiedDefinition
	crd  *unstructured.Unstructured
	hash string

	// converts is whether the hub's definition has a conversion webhook.
	converts bool
}

// Reconcile puts one definition into one workload cluster.
func (r *definitionReconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, req)
	return result, multicluster.AsForeign(err)
}

func (r *definitionReconciler) reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	w, ok := r.workloads.Get(req.ClusterName)
	if !ok {
		// The cluster's claims are not watched yet, or not any more. Engaging it queues its definitions.
		return reconcile.Result{}, nil
	}
	cluster, ok := r.fleet.Lookup(req.ClusterName)
	if !ok {
		return reconcile.Result{}, nil
	}
	defer r.tidy(req.ClusterName)
	p, offered, known := r.hub.Publication(req.Name)
	current, err := w.Watcher.Get(view.OwnedCRDKind, types.NamespacedName{Name: req.Name})
	if !known && !r.hub.CannotKnowPublications() || errors.Is(err, kindwatch.ErrNotSynced) {
		// Nothing is decided before both sides are known. Their becoming known queues the definition again.
		return reconcile.Result{}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	class, err := connection.Class(ctx, r.classes, cluster.Enrolment.Class)
	if err != nil {
		return reconcile.Result{}, err
	}
	// A class that does not exist offers nothing.
	offered = offered && class != nil && view.Offers(class.Spec.Agent, p.Kind.Group)
	if !offered {
		w.SetUnoffered(req.Name, true)
		// A cluster that is left alone, or of which nobody says what it is offered, keeps what it has.
		keep := class == nil || class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled
		return r.retain(ctx, w, req, current, keep)
	}
	want, err := r.want(ctx, req.Name, p.Kind.Version)
	if err != nil || want == nil {
		return reconcile.Result{}, err
	}
	return r.ensure(ctx, w, cluster, req, p, current, want)
}

// retain treats a definition that is not offered. It stays in the cluster as long as there are claims of that kind, because
// deleting it would delete them, which is their owners' decision. Its claims are still watched, so that one that is deleted is
// deleted in the hub, too, and does not hang on our finalizer. When there are none, the definition goes, unless it is to be
// kept.
func (r *definitionReconciler) retain(
	ctx context.Context, w *view.Cluster, req mcreconcile.Request, current *unstructured.Unstructured, keep bool,
) (reconcile.Result, error) {
	r.told(req, "")
	r.reporter.DefinitionForgotten(req.ClusterName, req.Name)
	r.metrics.forgetDefinition(req.ClusterName, req.Name)
	before, following := w.Followed(req.Name)
	if !following && (current == nil || definition.IsAnothers(current)) {
		return reconcile.Result{}, nil
	}
	ours := current != nil && definition.IsOurs(current, w.Owner()) && following && !before.DeletionsOnly
	if ours && before.InHub {
		r.hub.EnqueueKind(w, before.Kind.GroupResource(), r.hub.Requirements.Add)
		if keep {
			return reconcile.Result{}, nil
		}
		return r.withdraw(ctx, w, req, before.Kind, current)
	}
	judged, known := r.hub.Judgement(current, req.Name)
	if !known {
		return reconcile.Result{}, nil
	}
	if w.IsJudged(req.Name, judged) {
		if following {
			r.hub.EnqueueKind(w, before.Kind.GroupResource(), r.hub.Requirements.Add)
		}
		if !ours || keep {
			return reconcile.Result{}, nil
		}
		return r.withdraw(ctx, w, req, before.Kind, current)
	}
	return r.judge(ctx, w, req, before, following, judged)
}

// judge reads a definition that is not offered on both sides, and decides how it is retained.
func (r *definitionReconciler) judge(
	ctx context.Context, w *view.Cluster, req mcreconcile.Request, before view.Followed, following bool, states string,
) (reconcile.Result, error) {
	crd, err := r.get(ctx, w.Reader, req.Name)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case crd == nil:
		// Its claims are gone, too.
		r.unfollow(w, req.Name)
		return reconcile.Result{}, nil
	case !definition.IsOurs(crd, w.Owner()):
		if !following {
			return reconcile.Result{}, nil
		}
		if _, other := definition.OtherHubOf(crd, w.Owner()); other {
			r.unfollow(w, req.Name)
			return reconcile.Result{}, nil
		}
		return r.drain(w, req.Name, before.Kind), nil
	}
	hub, err := r.get(ctx, r.hubReader, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	f, ok := definition.RetainedKind(crd, hub)
	if !ok {
		r.unfollow(w, req.Name)
		w.SetJudged(req.Name, states)
		return reconcile.Result{}, nil
	}
	if !following && w.RetainedKinds() >= definition.MaxRetainedKinds {
		return reconcile.Result{}, nil
	}
	w.SetJudged(req.Name, states)
	if !r.follow(w, req.Name, f) {
		// Its claims may have become known in the same instant in which it changed, so that nothing else would tell that there are none.
		return reconcile.Result{RequeueAfter: condition.Soon}, nil
	}
	return reconcile.Result{}, nil
}

// drain treats a definition that has the name of one of ours and is not ours, or not any more. Its claims are left alone,
// except that those which bear our finalizer, because it was ours once, can be deleted. When there are none, it is not
// followed any more; only we could add the finalizer.
func (r *definitionReconciler) drain(w *view.Cluster, crd string, kind kindwatch.Kind) reconcile.Result {
	result := reconcile.Result{RequeueAfter: condition.SlowRetry()}
	if w.IsDrained(crd) {
		r.unfollow(w, crd)
		return result
	}
	if r.follow(w, crd, view.Followed{Kind: kind, InHub: true, DeletionsOnly: true}) {
		return result
	}
	claims, err := w.Watcher.List(kind)
	if err == nil && !slices.ContainsFunc(claims, w.BearsFinalizer) {
		w.SetDrained(crd)
		r.unfollow(w, crd)
	}
	return result
}

// want returns the definition that workload clusters shall have of a kind that travels in a version, or nil while the hub's
// cannot be known.
func (r *definitionReconciler) want(ctx context.Context, name, travels string) (*wantedDefinition, error) {
	meta, err := r.hub.Watcher.Get(crossplane.HubCRDKind, types.NamespacedName{Name: name})
	if err != nil {
		// Not there yet or not synced yet: its coming queues the definition again.
		return nil, nil //nolint:nilerr,nilnil // See above.
	}
	of := view.VerifiedState(meta, travels)

	r.mu.Lock()
	want, ok := r.wanted[name]
	r.mu.Unlock()
	if ok && want.of == of {
		return &want, nil
	}
	crd, err := r.get(ctx, r.hubReader, name)
	if err != nil || crd == nil {
		return nil, err
	}
	d := definition.DefinitionFor(crd, travels)
	want = wantedDefinition{of: view.VerifiedState(crd, travels), crd: d, hash: propagation.HashOf(d.Object), converts: definition.NeedsConversion(crd)}

	r.mu.Lock()
	r.wanted[name] = want
	r.mu.Unlock()
	return &want, nil
}

// ensure creates or corrects the definition.
func (r *definitionReconciler) ensure(
	ctx context.Context, w *view.Cluster, cluster connection.Cluster, req mcreconcile.Request, p crossplane.Publication,
	current *unstructured.Unstructured, want *wantedDefinition,
) (reconcile.Result, error) {
	owner := w.Owner()
	if current != nil && definition.IsOurs(current, owner) && owner.IsStamped(current) && w.IsVerified(req.Name, view.VerifiedState(current, want.hash)) {
		r.accept(ctx, w, cluster, req, p.Kind)
		return reconcile.Result{}, nil
	}
	have, err := r.get(ctx, w.Reader, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case have == nil:
		have = definition.Stamped(want.crd, owner)
		err = w.Client.Create(ctx, have, w.FieldOwner())
	case !definition.IsOurs(have, owner):
		return r.refuseForeign(ctx, w, cluster, req, p, have), nil
	default:
		converts, failed := r.wouldConvert(ctx, w, have, want, p)
		if failed != nil {
			return reconcile.Result{}, failed
		}
		if converts {
			return r.refuseConversion(ctx, w, cluster, req, p, have), nil
		}
		wanted := definition.KeepingStored(definition.Stamped(want.crd, owner), have)
		if definition.SameDefinition(have, wanted, owner) {
			break
		}
		have = definition.Corrected(have, wanted)
		err = w.Client.Update(ctx, have, w.FieldOwner())
	}
	if err != nil {
		return r.unwritten(ctx, w, cluster, req, err)
	}
	w.SetVerified(req.Name, view.VerifiedState(have, want.hash))
	r.accept(ctx, w, cluster, req, p.Kind)
	return reconcile.Result{}, nil
}

// unwritten makes of the answer of a cluster to the write of a definition what is to be told and when it is tried again.
func (r *definitionReconciler) unwritten(
	ctx context.Context, w *view.Cluster, cluster connection.Cluster, req mcreconcile.Request, err error,
) (reconcile.Result, error) {
	switch {
	case apierrors.IsAlreadyExists(err):
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case r.users.Excuses(req.ClusterName, err, r.clock.Now()):
		return reconcile.Result{RequeueAfter: condition.Soon}, nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		w.SetUnoffered(req.Name, false) // Its objects have no say in that.
		p := &condition.Problem{Reason: reason.ReasonDefinitionRejected, Message: fmt.Sprintf("The cluster refused the CustomResourceDefinition %q: %s", req.Name, multicluster.BoundedText(err.Error()))}
		if apierrors.IsForbidden(err) {
			p.Reason = reason.ReasonDefinitionForbidden
		}
		r.refuse(ctx, cluster, req, p)
		return reconcile.Result{RequeueAfter: condition.SlowRetry()}, nil
	}
	return reconcile.Result{}, fmt.Errorf("cannot write CustomResourceDefinition %q in cluster %q: %w", req.Name, req.ClusterName, err)
}

// wouldConvert is whether to put a definition into a cluster would take the objects that are there for ones of another
// version, although they need a webhook for that.
func (r *definitionReconciler) wouldConvert(
	ctx context.Context, w *view.Cluster, have *unstructured.Unstructured, want *wantedDefinition, p crossplane.Publication,
) (bool, error) {
	if !want.converts || definition.StorageVersion(have) == p.Kind.Version {
		return false, nil
	}
	w.SetUnoffered(have.GetName(), true) // Before looking: the end of the last object is a reason to look again.
	empty, err := r.hasNoObjects(ctx, w, have)
	return !empty, err
}

// refuseConversion leaves a definition as it is whose objects cannot be converted. They can still be deleted.
func (r *definitionReconciler) refuseConversion(
	ctx context.Context, w *view.Cluster, cluster connection.Cluster, req mcreconcile.Request, p crossplane.Publication, have *unstructured.Unstructured,
) reconcile.Result {
	if old, ok := definition.ClaimKindOf(have); ok {
		r.follow(w, req.Name, view.Followed{Kind: old, InHub: true, DeletionsOnly: true})
	}
	r.refuse(ctx, cluster, req, &condition.Problem{
		Reason: reason.ReasonDefinitionConversion,
		Message: fmt.Sprintf("The hub offers %q in the version %q now. The cluster has objects of the version %q, and cannot call the hub's conversion webhook. "+
			"They are not synchronised, and can be deleted.", req.Name, p.Kind.Version, multicluster.BoundedText(definition.StorageVersion(have))),
	})
	return reconcile.Result{RequeueAfter: condition.SlowRetry()}
}

// refuseForeign leaves a definition alone that is somebody else's, or has become so.
func (r *definitionReconciler) refuseForeign(
	ctx context.Context, w *view.Cluster, cluster connection.Cluster, req mcreconcile.Request, p crossplane.Publication, have *unstructured.Unstructured,
) reconcile.Result {
	result := reconcile.Result{RequeueAfter: condition.SlowRetry()}
	if other, ok := definition.OtherHubOf(have, w.Owner()); ok {
		// That hub looks after the claims, also after those that it took over.
		r.unfollow(w, req.Name)
		r.refuse(ctx, cluster, req, &condition.Problem{Reason: reason.ReasonDefinitionForeign, Message: fmt.Sprintf(
			"The CustomResourceDefinition %q was put into the cluster by the hub %q. It is left alone, and its objects are not synchronised.", req.Name, other)})
		return result
	}
	if theirs, ok := definition.ClaimKindOf(have); ok && theirs.GroupKind() == p.Kind.GroupKind() {
		result = r.drain(w, req.Name, p.Kind)
	} else {
		r.unfollow(w, req.Name)
	}
	message := fmt.Sprintf("The CustomResourceDefinition %q is in the cluster already and was not put there by Masthead. "+
		"It is left alone, and its objects are not synchronised.", req.Name)
	if owner := metav1.GetControllerOfNoCopy(have); owner != nil {
		message = fmt.Sprintf("The CustomResourceDefinition %q belongs to the %s of the cluster. It is left alone, and its objects are not synchronised.",
			req.Name, multicluster.BoundedText(fmt.Sprintf("%s %q", owner.Kind, owner.Name)))
	}
	r.refuse(ctx, cluster, req, &condition.Problem{Reason: reason.ReasonDefinitionForeign, Message: message})
	return result
}

// get reads a definition from an API server; nil if there is none.
func (r *definitionReconciler) get(ctx context.Context, from client.Reader, name string) (*unstructured.Unstructured, error) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(crossplane.CRDGVK)
	err := from.Get(ctx, types.NamespacedName{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get CustomResourceDefinition %q: %w", name, err)
	}
	return crd, nil
}

// accept synchronises the claims of a kind whose definition is in place. Those that are known already are looked at again:
// the class or the publication may have changed what they should do.
func (r *definitionReconciler) accept(ctx context.Context, w *view.Cluster, cluster connection.Cluster, req mcreconcile.Request, kind kindwatch.Kind) {
	w.SetUnoffered(req.Name, false)
	// The watch is tried again with back-off, and its coming through makes a new request.
	switch state, message := w.Watcher.State(kind); state {
	case kindwatch.StateForbidden:
		r.refuse(ctx, cluster, req, &condition.Problem{
			Reason:  reason.ReasonClaimsForbidden,
			Message: fmt.Sprintf("Masthead lacks the right to list and watch %s in the cluster.", req.Name),
		})
		return
	case kindwatch.StateTooLarge:
		r.refuse(ctx, cluster, req, &condition.Problem{Reason: reason.ReasonClaimsTooLarge, Message: "Claims are not synchronised: " + message + "."})
		return
	case kindwatch.StateStale:
		r.refuse(ctx, cluster, req, &condition.Problem{Reason: reason.ReasonClaimsStale, Message: "What happens to claims is not seen: " + message + "."})
		return
	case kindwatch.StateSynced, kindwatch.StateSyncing, kindwatch.StateNotServed, kindwatch.StateUnwatched:
	}
	r.told(req, "")
	r.reporter.DefinitionServed(req.ClusterName, req.Name)
	r.metrics.definition(req.ClusterName, req.Name, true)
	w.SetAccepted(req.Name)
	if !r.follow(w, req.Name, view.Followed{Kind: kind, InHub: true}) {
		r.hub.EnqueueKind(w, kind.GroupResource(), r.hub.Requirements.AddInitial)
	}
}

func (r *definitionReconciler) follow(w *view.Cluster, crd string, f view.Followed) bool {
	before, following := w.Followed(crd)
	news := w.Follow(crd, f)
	if news {
		r.hub.RefreshFollowed(w)
	}
	if following && before.Kind != f.Kind {
		r.kindGone(w.Name, before.Kind)
	}
	return news
}

func (r *definitionReconciler) unfollow(w *view.Cluster, crd string) {
	before, _ := w.Followed(crd)
	if w.Unfollow(crd) {
		r.hub.RefreshFollowed(w)
		r.kindGone(w.Name, before.Kind)
	}
}

// refuse tells everybody who should know that a definition cannot be put into a cluster, once.
func (r *definitionReconciler) refuse(ctx context.Context, cluster connection.Cluster, req mcreconcile.Request, p *condition.Problem) {
	r.metrics.definition(req.ClusterName, req.Name, false)
	if !r.told(req, p.Reason) {
		return
	}
	r.reporter.DefinitionRefused(req.ClusterName, req.Name, p.Reason, p.Message)
	log.FromContext(ctx).Info("Cannot put a definition into the cluster", "reason", p.Reason, "message", p.Message)
	r.recorder.Eventf(objectOf(cluster), nil, corev1.EventTypeWarning, p.Reason, "PullDefinition", "%s", p.Message)
}

// told remembers what was told about a definition and says whether that is news.
func (r *definitionReconciler) told(req mcreconcile.Request, what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused[req] == what {
		return false
	}
	r.refused[req] = what
	if what == "" {
		delete(r.refused, req)
	}
	return true
}

// forget drops what is kept about a cluster that is gone.
func (r *definitionReconciler) forget(name mcr.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for req := range r.refused {
		if req.ClusterName == name {
			delete(r.refused, req)
		}
	}
}

// objectOf is the enrolled object of a cluster, as events refer to it.
func objectOf(cluster connection.Cluster) *metav1.PartialObjectMetadata {
	o := cluster.Enrolment.Object
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	obj.SetGroupVersionKind(o.GroupVersionKind)
	return obj
}
