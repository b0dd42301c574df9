// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
)

// A cluster that leaves keeps its claims, and the hub keeps their objects, with their source: whoever enrols the
// cluster again finds everything as it was. What goes is our finalizer, because nobody would be there to remove it when
// a claim is deleted, and the record of the claim's object: what happens in the hub while the cluster is away is not a
// loss. Leave is taken while the cluster is still connected and when no reconcile of it runs any more, so that no
// finalizer comes back.

// Bounds of taking leave. The rate of requests is that of the cluster's connection.
const (
	maxLeavingAtOnce   = 8
	maxLeavingAttempts = 5
)

func (r *requirementReconciler) leave(ctx context.Context, w *view.Cluster) error {
	var unknown []error
	var left, kept atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxLeavingAtOnce)
	for _, kind := range w.ClaimKinds() {
		claims, err := w.Watcher.List(kind)
		if err != nil {
			unknown = append(unknown, fmt.Errorf("cannot tell which %s of cluster %q have our finalizer: %w", kind, w.Name, err))
			continue
		}
		for _, claim := range claims {
			if !w.BearsFinalizer(claim) {
				continue
			}
			s := &scope{workload: w, Facts: plan.Facts{Request: w.Request(kind, claim), Claim: claim}}
			group.Go(func() error {
				err := w.Guard.Run("leaving a claim", func() error { return r.leaveClaim(ctx, s) })
				if p := reason.OfWorkload(err, "", ""); err == nil || p != nil || apierrors.IsConflict(err) {
					count(&left, &kept, err)
					return nil
				}
				return err
			})
		}
	}
	err := group.Wait()
	log.FromContext(ctx).Info("Took leave of a cluster", "claims", left.Load(), "refused", kept.Load())
	if n := kept.Load(); n > 0 {
		unknown = append(unknown, fmt.Errorf("cluster %q refused to have the finalizers of %d claims removed", w.Name, n))
	}
	return errors.Join(append(unknown, err)...)
}

func count(done, refused *atomic.Int64, err error) {
	if err != nil {
		refused.Add(1)
		return
	}
	done.Add(1)
}

// leaveClaim removes our finalizer from a claim, whoever else changes it meanwhile.
func (r *requirementReconciler) leaveClaim(ctx context.Context, s *scope) error {
	var err error
	for range maxLeavingAttempts {
		claim := s.workload.Unprotected(s.Claim)
		ownership.WithoutRecord(claim)
		if err = patchClaim(ctx, s, claim, writeFinalizer, r.metrics); !apierrors.IsConflict(err) {
			break
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(s.Kind.GroupVersionKind)
		if err = s.workload.Reader.Get(ctx, s.NamespacedName, live); err != nil || live.GetUID() != s.Claim.GetUID() || !s.workload.BearsFinalizer(live) {
			break
		}
		s.Claim = live
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove the finalizer of %s: %w", s.Request, err)
	}
	return nil
}
