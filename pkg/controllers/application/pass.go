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

// pass is one look at one Application.
type pass struct {
	r   *reconciler
	w   *workload.Cluster
	key record.ApplicationKey
	t   *workload.Tracked

	// app is as the watch has it, and is not changed.
	app      *appsv1alpha1.Application
	selector selector
	assessor health.Assessor

	// regime is that under which the look began. Under another one it writes nothing any more: see superseded.
	regime uint64

	kinds     []seenKind
	selection selection

	// sight is what the Application sees, wantedSince the generation of which lists have all that it discovers by, and
	// tooManyWanted whether the cluster looks for too much to look for that as well; leftOut is what too many others in
	// the namespace look for. discovered is what was found, and notServed are the kinds of which nothing can be.
	sight         record.Sight
	wantedSince   uint64
	tooManyWanted bool
	leftOut       []record.Mark
	notServed     []string
	// tooManySought is whether an inventory names more kinds than are asked for, and undiscovered whether something that
	// is discovered may not be known yet.
	tooManySought, undiscovered bool
	discovered                  []appstatus.ComponentView

	healthCheck healthcheck.View

	// checkedAt is when the API server was last asked whether the Application is still there.
	checkedAt time.Time

	// again is when to look again at the latest; zero for never.
	again time.Duration
	errs  []error
}

// newPass returns nil if there is nothing to look at: no Application, or one that the garbage collector deletes with
// its components.
func (r *reconciler) newPass(w *workload.Cluster, key record.ApplicationKey) (*pass, error) {
	regime := w.CurrentRegime() // Before anything is decided by it.
	t, app := w.Begin(key), w.Application(key)
	if state, _ := w.Watcher.State(record.ApplicationKind); t != nil && app == nil && state == kindwatch.StateSynced {
		// It went while it was noted that it is there.
		r.gone(w, key)
	}
	if t == nil || app == nil || app.UID != t.UID || app.DeletionTimestamp != nil && !record.IsOrphaning(app) {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	s, err := selectorOf(app)
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	return &pass{r: r, w: w, key: key, t: t, app: app, selector: s, assessor: r.assessor(), regime: regime}, nil
}

// errSuperseded is why a write was not begun.
var errSuperseded = errors.New("what the class says of Applications has changed")

// superseded is whether the mode or the policy of the cluster is another one than when the look began. It is asked
// before each write of a component or a Pod: a look can take minutes where the API server is slow, and whoever sets
// ObserveOnly, or takes a consent back, means from now on. At most the one request that is under way is still carried
// out. The change has every Application looked at again, so that nothing is lost.
func (p *pass) superseded() bool { return p.w.CurrentRegime() != p.regime }

// lookAgain has the Application looked at again after d at the latest.
func (p *pass) lookAgain(d time.Duration) {
	if p.again == 0 || d < p.again {
		p.again = max(d, time.Millisecond)
	}
}

func (p *pass) fail(err error) { p.errs = append(p.errs, err) }

func byText(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }
