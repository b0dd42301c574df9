// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mccontext "sigs.k8s.io/multicluster-runtime/pkg/context"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// clusterReconciler wraps the reconciler of a Controller: it adds the cluster to the context, and filters errors that
// are no failure in a fleet.
type clusterReconciler[R mcreconcile.ClusterAware[R]] struct {
	wrapped reconcile.TypedReconciler[R]

	// getCluster returns the connection of an engaged cluster.
	getCluster func(context.Context, mcr.ClusterName) (cluster.Cluster, error)
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
		return reconcile.Result{Requeue: true, Priority: res.Priority}, nil //nolint:staticcheck // As the comment says.
	default:
		return res, err
	}
}

// reconcile makes a panic end the cluster's connection. Without a connection, controller-runtime recovers the panic,
// turns it into an error and counts it.
func (r *clusterReconciler[R]) reconcile(ctx context.Context, req R) (res reconcile.Result, err error) {
	cl, _ := r.getCluster(ctx, req.Cluster())
	guarded := GetGuard(cl)
	if guarded == nil {
		return r.wrapped.Reconcile(ctx, req)
	}
	err = guarded.Run("reconciling", func() (err error) {
		res, err = r.wrapped.Reconcile(ctx, req)
		return err
	})
	return res, err
}

// outcome is the meaning of an error for the request. The greatest wins if an error has several causes.
type outcome int

const (
	// outcomeNone: there was no error.
	outcomeNone outcome = iota
	// outcomeGone: the cluster has been disengaged; nothing is left to do.
	outcomeGone
	// outcomeRetry: it is retried without being reported.
	outcomeRetry
	// outcomeFailed: the error is reported.
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
			return outcomeFailed // It wraps nothing, or it is terminal.
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

// worst returns the outcome of an error with several causes.
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

// isOptimisticLock reports whether a conflict is resolved by reading again. One of server-side apply is not: it recurs
// until the object is changed, so users must see it.
func isOptimisticLock(err error) bool {
	return apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
