// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mccontext "sigs.k8s.io/multicluster-runtime/pkg/context"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// emptyError wraps nothing, although it could.
type emptyError struct{ error }

func (emptyError) Unwrap() error { return nil }

func TestClusterReconciler(t *testing.T) {
	boom := errors.New("boom")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "x", errors.New("object has been modified"))
	owned := apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}}, "owned")
	priority := 5
	later := reconcile.Result{RequeueAfter: 7, Priority: &priority}
	retry := reconcile.Result{Requeue: true, Priority: &priority} //nolint:staticcheck // See the reconciler.

	cases := map[string]struct {
		reason string
		err    error
		want   reconcile.Result
		fails  bool
	}{
		"Success":         {reason: "The result is passed on.", want: later},
		"Failure":         {reason: "An error is passed on.", err: boom, want: later, fails: true},
		"ClusterNotFound": {reason: "The cluster is gone, and so is the work.", err: mcr.ErrClusterNotFound},
		"ClusterNotFoundWrapped": {
			reason: "However deep it is wrapped.",
			err:    fmt.Errorf("cannot get: %w", fmt.Errorf("no: %w", mcr.ErrClusterNotFound)),
		},
		"NotConnected": {
			reason: "The item is requeued, and held by the gate, so that it is not lost.",
			err:    fmt.Errorf("cannot write: %w", ErrClusterNotConnected), want: retry,
		},
		"Conflict":        {reason: "A conflict is retried.", err: fmt.Errorf("cannot update: %w", conflict), want: retry},
		"ApplyConflict":   {reason: "Another manager owns the field: retrying does not help.", err: owned, want: later, fails: true},
		"Terminal":        {reason: "A terminal error is passed on.", err: reconcile.TerminalError(boom), want: later, fails: true},
		"TerminalNothing": {reason: "Also without a cause.", err: reconcile.TerminalError(nil), want: later, fails: true},
		"TerminalConflict": {
			reason: "Terminal means that it must not be retried.",
			err:    reconcile.TerminalError(conflict), want: later, fails: true,
		},
		"NotFound": {
			reason: "An object that is not found is not a cluster that is not found.",
			err:    apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "x"), want: later, fails: true,
		},
		"JoinedHarmless": {
			reason: "Of two harmless causes, the one that is retried wins.",
			err:    errors.Join(mcr.ErrClusterNotFound, conflict), want: retry,
		},
		"JoinedHarmful": {
			reason: "A harmless cause does not hide the other.",
			err:    errors.Join(mcr.ErrClusterNotFound, boom), want: later, fails: true,
		},
		"AggregateHarmful": {
			reason: "Nor in an aggregate.",
			err:    kerrors.NewAggregate([]error{conflict, boom}), want: later, fails: true,
		},
		"AggregateHarmless": {
			reason: "An aggregate of harmless causes is harmless.",
			err:    kerrors.NewAggregate([]error{mcr.ErrClusterNotFound, mcr.ErrClusterNotFound}),
		},
		"TwoWrapped": {
			reason: "Nor if two are wrapped at once.",
			err:    fmt.Errorf("%w: %w", ErrClusterNotConnected, boom), want: later, fails: true,
		},
		"WrapsNothing": {reason: "An error that wraps nothing is a failure.", err: emptyError{boom}, want: later, fails: true},
		"JoinsNothing": {reason: "An empty aggregate is a failure.", err: kerrors.Aggregate(noCauseError{}), want: later, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var cluster mcr.ClusterName
			r := &clusterReconciler[mcreconcile.Request]{wrapped: mcreconcile.Func(
				func(ctx context.Context, _ mcreconcile.Request) (reconcile.Result, error) {
					cluster, _ = mccontext.ClusterFrom(ctx)
					return later, tc.err
				}), getCluster: newManager(t).GetCluster}
			got, err := r.Reconcile(t.Context(), request("x", "1"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nresult: -want, +got:\n%s", tc.reason, diff)
			}
			want := ""
			if tc.fails {
				want = tc.err.Error()
			}
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if diff := cmp.Diff(want, gotErr); diff != "" {
				t.Errorf("%s\nerror: -want, +got:\n%s", tc.reason, diff)
			}
			if cluster != "x" {
				t.Errorf("the context names the cluster: got %q", cluster)
			}
		})
	}
}

type noCauseError struct{}

func (noCauseError) Error() string   { return "nothing" }
func (noCauseError) Errors() []error { return nil }
func (noCauseError) Is(error) bool   { return false }

// TestUpstreamNotFoundWrapperHidesErrors shows why multicluster-runtime's wrapper is not used.
func TestUpstreamNotFoundWrapperHidesErrors(t *testing.T) {
	r := mcreconcile.NewClusterNotFoundWrapper[mcreconcile.Request](mcreconcile.Func(
		func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, errors.Join(mcr.ErrClusterNotFound, errors.New("boom"))
		}))
	if _, err := r.Reconcile(t.Context(), request("x", "1")); err != nil {
		t.Errorf("multicluster-runtime's wrapper reports %v; is ours needed?", err)
	}
}
