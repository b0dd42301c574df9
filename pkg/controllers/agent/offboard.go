// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A cluster that leaves keeps its claims, and the hub keeps their objects with their source, so that re-enrolling the
// cluster finds everything unchanged. Our finalizer is removed, because nothing would remove it when a claim is
// deleted, and so is the record of the claim's object: changes in the hub while the cluster is away are not a loss.
// Offboarding runs while the cluster is still connected and after its last reconcile, so that no finalizer is added
// again.
//
// A cluster can leave before any reconcile: the manager or the connection has just started. What no watch knows by then
// is listed, in pages. Offboarding does not wait for anything that depends on a reconcile.

// Bounds of offboarding. The rate of requests is that of the cluster's connection.
const (
	maxOffboardedAtOnce = 8
	maxOffboardAttempts = 5
)

// offboardBackoff is the back-off for a cluster that could not answer. The caller limits the total time: the provider
// stops after OffboardTimeout, or when the cluster is enrolled again.
func offboardBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Cap: 15 * time.Second, Steps: 10, Jitter: 0.1}
}

// offboard removes our finalizer from every claim of a cluster. It retries while the cluster answers with transient
// errors, and gives up as soon as the cluster does not respond.
func (a *agent) offboard(ctx context.Context, name mcr.ClusterName) error {
	w, ok := a.workloads.Get(name)
	if !ok {
		return nil
	}
	var last error
	err := offboardBackoff().DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		last = a.requirements.offboard(ctx, w, a.definitions.Offboard)
		return !mayPass(last), nil
	})
	if last == nil {
		last = err
	}
	return multicluster.AsForeign(last)
}

// mayPass reports whether one of a cluster's errors is transient.
func mayPass(err error) bool {
	return err != nil && slices.ContainsFunc(apierror.Each(err), apierror.IsTransient)
}

// offboarding is one attempt at offboarding a cluster.
type offboarding struct {
	r *requirementReconciler
	w *index.Cluster

	group *errgroup.Group
	left  atomic.Int64

	mu sync.Mutex
	// refused counts the claims that the cluster did not let us change, unknown the kinds or definitions that it did not
	// let us read. One error of each is kept, preferably a transient one.
	refused, unknown       int
	whyRefused, whyUnknown error
}

// offboard removes our finalizer from every claim of each kind of a cluster.
func (r *requirementReconciler) offboard(
	ctx context.Context, w *index.Cluster, each func(context.Context, *index.Cluster, definition.KindFunc) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxOffboardedAtOnce)
	o := &offboarding{r: r, w: w, group: group}
	err := each(ctx, w, func(kind kindwatch.Kind, known bool, err error) error {
		if err == nil {
			err = o.claims(ctx, kind, known)
		}
		return o.note(err)
	})
	// If the cluster does not respond, the first failed request says why; the others were only cancelled.
	if first := group.Wait(); first != nil {
		err = first
	}
	log.FromContext(ctx).Info("Offboarded cluster", "claims", o.left.Load(), "refused", o.refused, "unknown", o.unknown)
	if err != nil {
		return err
	}
	var all []error
	if o.unknown > 0 {
		all = append(all, fmt.Errorf("cannot tell which claims of %d kinds of cluster %q have our finalizer: %w", o.unknown, w.Name, o.whyUnknown))
	}
	if o.refused > 0 {
		all = append(all, fmt.Errorf("cluster %q refused the removal of the finalizers of %d claims: %w", w.Name, o.refused, o.whyRefused))
	}
	return errors.Join(all...)
}

// note records an API error that leaves something unknown, and returns any other error.
func (o *offboarding) note(err error) error {
	if !apierror.IsAnswer(err) && !errors.Is(err, limits.ErrRefused) {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unknown++
	keep(&o.whyUnknown, err)
	return nil
}

// keep keeps one of several errors.
func keep(kept *error, err error) {
	if *kept == nil || !mayPass(*kept) {
		*kept = err
	}
}

// claims releases the claims of a kind.
func (o *offboarding) claims(ctx context.Context, kind kindwatch.Kind, known bool) error {
	if !known {
		return o.w.EachLive(ctx, kind, func(claim *unstructured.Unstructured) error {
			o.claim(ctx, kind, claim)
			return nil
		})
	}
	claims, err := o.w.Watcher.List(kind)
	for _, claim := range claims {
		o.claim(ctx, kind, claim.Object())
	}
	return err
}

// claim releases a claim if it has our finalizer.
func (o *offboarding) claim(ctx context.Context, kind kindwatch.Kind, claim *unstructured.Unstructured) {
	if !o.w.BearsFinalizer(claim) {
		return
	}
	s := &downstream.Scope{Workload: o.w, Facts: plan.Facts{ObjectRequest: o.w.Request(kind, client.ObjectKeyFromObject(claim)), Claim: claim}}
	o.group.Go(func() error {
		err := o.w.Guard.Run("offboarding a claim", func() error { return o.r.offboardClaim(ctx, s) })
		switch p := hubaccess.WorkloadProblem(err, "", ""); {
		case err == nil:
			o.left.Add(1)
		case p != nil, apierrors.IsConflict(err), mayPass(err):
			o.mu.Lock()
			defer o.mu.Unlock()
			o.refused++
			keep(&o.whyRefused, err)
		default:
			return err
		}
		return nil
	})
}

// offboardClaim removes our finalizer from a claim, despite concurrent changes.
func (r *requirementReconciler) offboardClaim(ctx context.Context, s *downstream.Scope) error {
	var err error
	for range maxOffboardAttempts {
		claim := s.Workload.Unprotected(s.Claim)
		ownership.WithoutRecord(claim)
		if err = downstream.PatchClaim(ctx, s, claim, downstream.WriteFinalizer, r.metrics); !apierrors.IsConflict(err) {
			break
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(s.Kind.GroupVersionKind)
		if err = s.Workload.Reader.Get(ctx, s.NamespacedName, live); err != nil || live.GetUID() != s.Claim.GetUID() || !s.Workload.BearsFinalizer(live) {
			break
		}
		s.Claim = live
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove the finalizer of %s: %w", s.ObjectRequest, err)
	}
	return nil
}
