// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// scope is what the reconciliation of one Application starts from. It is only read, except for tracked, which is shared
// with later reconciliations.
type scope struct {
	r        *reconciler
	w        *workload.Cluster
	key      record.ApplicationKey
	tracked  *workload.Tracked
	selector selector
	assessor health.Assessor

	// app is the Application as the watch shows it, or as it was written since.
	app *appsv1alpha1.Application

	// confirmedAt is when a write of its status showed that it is there.
	confirmedAt time.Time

	// policyGeneration is the one in force when the reconciliation began. Once it changes, nothing more is written: see
	// superseded. visibility is what the Application may see.
	policyGeneration uint64
	visibility       record.Visibility
}

// newScope returns a PendingError if there is nothing to reconcile: no Application, or one that the garbage collector
// deletes with its components.
func (r *reconciler) newScope(w *workload.Cluster, key record.ApplicationKey) (*scope, error) {
	generation := w.PolicyGeneration() // Read before any decision depends on it.
	t, app := w.Begin(key), w.Application(key)
	if state, _ := w.Watcher.State(record.ApplicationKind); t != nil && app == nil && state == kindwatch.StateSynced {
		// It was deleted while it was being tracked.
		r.forgetDeleted(w, key)
	}
	if t == nil || app == nil || app.UID != t.UID || app.DeletionTimestamp != nil && !record.IsOrphaning(app) {
		return nil, condition.PendingError{}
	}
	s, err := newSelector(app)
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	return &scope{
		r: r, w: w, key: key, tracked: t, app: app, selector: s, assessor: r.assessor(), policyGeneration: generation,
		visibility: w.VisibilityIn(key.Namespace),
	}, nil
}

// errSuperseded says that a write was not started because the generation changed.
var errSuperseded = errors.New("the settings of the class for Applications have changed")

// superseded reports whether the cluster's mode or policy has changed since the reconciliation began. It is checked
// before each write of a component or a Pod: a reconciliation can take minutes if the API server is slow, and setting
// ObserveOnly or withdrawing a consent takes effect immediately. At most one request in flight still completes. The
// change requeues every Application, so nothing is lost.
func (s *scope) superseded() bool { return s.w.PolicyGeneration() != s.policyGeneration }

// again is when to look again at what has a problem; nil if an event follows.
func again(p *condition.Error) error {
	if p == nil {
		return nil
	}
	return condition.PendingError{After: p.RetryAfter}
}

func byText(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }
