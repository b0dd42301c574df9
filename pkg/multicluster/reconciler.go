// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mccontext "sigs.k8s.io/multicluster-runtime/pkg/context"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/guard"
)

// clusterReconciler wraps the reconciler of a Controller: it puts the cluster into the context, and takes out of the
// errors what is no failure in a fleet.
type clusterReconciler[R mcreconcile.ClusterAware[R]] struct {
	wrapped reconcile.TypedReconciler[R]

	// guardOf returns the guard of an engaged cluster, or nil.
	guardOf func(mcr.ClusterName) *guard.Guard
}

// Reconcile implements reconcile.TypedReconciler.
func (r *clusterReconciler[R]) Reconcile(ctx context.Context, req R) (reconcile.Result, error) {
	res, err := r.reconcile(mccontext.WithCluster(ctx, req.Cluster()), req)
	switch classify(err) {
	case outcomeGone:
		return reconcile.Result{}, nil
	case outcomeRetry:
		// Requeue is the only way to ask for the rate limiter's back-off without an error in the log. A fixed
		// RequeueAfter would reset that back-off each time.
		return reconcile.Result{Requeue: true, Priority: res.Priority}, nil
	default:
		return res, err
	}
}

// reconcile has a panic cost the cluster its connection. One for which there is no connection is left to
// controller-runtime, which makes an error of it and counts it.
func (r *clusterReconciler[R]) reconcile(ctx context.Context, req R) (res reconcile.Result, err error) {
	guarded := r.guardOf(req.Cluster())
	if guarded == nil {
		return r.wrapped.Reconcile(ctx, req)
	}
	err = guarded.Run("reconciling", func() (err error) {
		res, err = r.wrapped.Reconcile(ctx, req)
		return err
	})
	return res, err
}

// outcome is what an error means for the request. A greater one wins if an error has several causes.
type outcome int

const (
	// outcomeNone: there was no error.
	outcomeNone outcome = iota
	// outcomeGone: the cluster has been disengaged, there is nothing left to do.
	outcomeGone
	// outcomeRetry: it will work later, and nobody needs to know.
	outcomeRetry
	// outcomeFailed: the error is to be reported.
	outcomeFailed
)

// classify decides what an error of a reconcile means. An error of several causes (errors.Join, an aggregate, two %w)
// is harmless only if all of them are; errors.Is, which multicluster-runtime's wrapper uses, would let one harmless
// cause hide the others.
func classify(err error) outcome {
	if err == nil {
		return outcomeNone
	}
	switch e := err.(type) { //nolint:errorlint // What is wrapped is looked at one by one.
	case apierrors.APIStatus:
		if isOptimisticLock(err) {
			return outcomeRetry
		}
		return outcomeFailed
	case interface{ Unwrap() []error }:
		return worst(e.Unwrap())
	case interface{ Errors() []error }:
		return worst(e.Errors())
	case interface{ Unwrap() error }:
		o := classify(e.Unwrap())
		if o == outcomeNone || o == outcomeRetry && errors.Is(err, reconcile.TerminalError(nil)) {
			return outcomeFailed // It wraps nothing, or it says that trying again is of no use.
		}
		return o
	default:
		switch {
		case errors.Is(err, mcr.ErrClusterNotFound):
			return outcomeGone
		case errors.Is(err, ErrClusterNotConnected):
			return outcomeRetry
		}
		return outcomeFailed
	}
}

// worst is the outcome of an error with several causes.
func worst(errs []error) outcome {
	o := outcomeNone
	for _, err := range errs {
		o = max(o, classify(err))
	}
	if o == outcomeNone {
		return outcomeFailed // An error without a cause is one itself.
	}
	return o
}

// isOptimisticLock tells a conflict that reading again resolves from one of server-side apply, which comes back until
// somebody changes the object, and which the user must hence see.
func isOptimisticLock(err error) bool {
	return apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
