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
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// pass is one reconcile of one Application.
type pass struct {
	r   *reconciler
	w   *workload.Cluster
	key record.ApplicationKey
	t   *workload.Tracked

	// app is the Application from the watch. It is not changed.
	app      *appsv1alpha1.Application
	selector selector
	assessor health.Assessor

	// policyGeneration is the one in force when the pass began. Once it changes, the pass writes nothing more: see
	// superseded.
	policyGeneration uint64

	kinds     []seenKind
	selection selection

	// sight is what the Application may see, wantedSince the generation from which lists have everything it discovers by.
	// tooManyWanted reports whether the cluster has no room for its marks; leftOut are marks that too many others in the
	// namespace look for. discovered are the objects found, and notServed the kinds that are not served.
	sight         record.Visibility
	wantedSince   uint64
	tooManyWanted bool
	leftOut       []record.Mark
	notServed     []string
	// tooManySought reports whether an inventory names too many kinds, and undiscovered whether some discovered objects
	// may not be known yet.
	tooManySought, undiscovered bool
	discovered                  []appstatus.ComponentView

	healthCheck healthcheck.View

	// checkedAt is when the API server last answered whether the Application exists.
	checkedAt time.Time

	// again is the delay after which to requeue at the latest; zero for never.
	again time.Duration
	errs  []error
}

// newPass returns nil if there is nothing to reconcile: no Application, or one that the garbage collector deletes with
// its components.
func (r *reconciler) newPass(w *workload.Cluster, key record.ApplicationKey) (*pass, error) {
	generation := w.PolicyGeneration() // Read before any decision depends on it.
	t, app := w.Begin(key), w.Application(key)
	if state, _ := w.Watcher.State(record.ApplicationKind); t != nil && app == nil && state == kindwatch.StateSynced {
		// It was deleted while it was being tracked.
		r.forgetDeleted(w, key)
	}
	if t == nil || app == nil || app.UID != t.UID || app.DeletionTimestamp != nil && !record.IsOrphaning(app) {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	s, err := newSelector(app)
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	return &pass{r: r, w: w, key: key, t: t, app: app, selector: s, assessor: r.assessor(), policyGeneration: generation}, nil
}

// errSuperseded says that a write was not started because the generation changed.
var errSuperseded = errors.New("the settings of the class for Applications have changed")

// superseded reports whether the cluster's mode or policy has changed since the pass began. It is checked before each
// write of a component or a Pod: a pass can take minutes if the API server is slow, and setting ObserveOnly or
// withdrawing a consent takes effect immediately. At most one request in flight still completes. The change requeues
// every Application, so nothing is lost.
func (p *pass) superseded() bool { return p.w.PolicyGeneration() != p.policyGeneration }

// lookAgain requeues the Application after d at the latest.
func (p *pass) lookAgain(d time.Duration) {
	if p.again == 0 || d < p.again {
		p.again = max(d, time.Millisecond)
	}
}

func (p *pass) fail(err error) { p.errs = append(p.errs, err) }

func byText(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }
