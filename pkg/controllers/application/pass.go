// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// pass is one look at one Application.
type pass struct {
	r   *reconciler
	w   *workload
	key record.ApplicationKey
	t   *tracked

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

// reconcileApplication looks at one Application.
func (r *reconciler) reconcileApplication(ctx context.Context, w *workload, key record.ApplicationKey) (reconcile.Result, error) {
	p, err := r.newPass(w, key)
	if p == nil || err != nil {
		return reconcile.Result{}, err
	}
	if w.currentMode() != modeEnabled {
		return p.standDown(ctx)
	}
	p.watch(ctx)
	p.choose()
	p.note(ctx)
	p.own(ctx)
	if p.selector.orphaning {
		return p.result()
	}
	p.check(ctx)
	if p.superseded() {
		return p.result()
	}
	p.report(ctx)
	p.letGo()
	return p.result()
}

// newPass returns nil if there is nothing to look at: no Application, or one that the garbage collector deletes with
// its components.
func (r *reconciler) newPass(w *workload, key record.ApplicationKey) (*pass, error) {
	regime := w.currentRegime() // Before anything is decided by it.
	t, app := w.begin(key), w.application(key)
	if state, _ := w.watcher.State(record.ApplicationKind); t != nil && app == nil && state == kindwatch.StateSynced {
		// It went while it was noted that it is there.
		r.gone(w, key)
	}
	if t == nil || app == nil || app.UID != t.uid || app.DeletionTimestamp != nil && !record.IsOrphaning(app) {
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
func (p *pass) superseded() bool { return p.w.currentRegime() != p.regime }

// lookAgain has the Application looked at again after d at the latest.
func (p *pass) lookAgain(d time.Duration) {
	if p.again == 0 || d < p.again {
		p.again = max(d, time.Millisecond)
	}
}

func (p *pass) fail(err error) { p.errs = append(p.errs, err) }

func (p *pass) result() (reconcile.Result, error) {
	if err := errors.Join(p.errs...); err != nil {
		return reconcile.Result{}, err
	}
	if len(p.t.patched) > 0 {
		p.lookAgain(catchUp)
	}
	return reconcile.Result{RequeueAfter: p.again}, nil
}

// watch has the kinds watched that the Application has to do with: those that it names, those of which it discovers
// objects, and those that it named, until nothing of them is owned any more.
func (p *pass) watch(ctx context.Context) {
	named, sought := kindsOf(p.app), p.seek(ctx)
	leaving := formerKindsOf(p.app)
	for kind := range p.t.kinds.set() {
		if _, ok := named[kind.GroupVersionKind]; !ok && kind != record.HealthCheckPodKind {
			leaving[kind.GroupVersionKind] = struct{}{}
		}
	}
	wanted := maps.Clone(named)
	maps.Copy(wanted, sought)
	for _, gvk := range slices.SortedFunc(maps.Keys(wanted), byText) {
		k := seenKind{namedKind: p.w.ask(ctx, gvk, p.assessor)}
		if _, ok := sought[gvk]; ok {
			k.admit(p.sight)
			delete(leaving, gvk)
		}
		_, ok := named[gvk]
		k.unnamed = !ok
		p.kinds = append(p.kinds, k)
	}
	for _, gvk := range slices.SortedFunc(maps.Keys(leaving), byText) {
		k := p.w.ask(ctx, gvk, p.assessor)
		k.leaving = true
		p.kinds = append(p.kinds, seenKind{namedKind: k})
	}
	refused := p.w.watch(p.key, p.t, p.wanted(), p.groups())
	for i := range p.kinds {
		p.kinds[i].see(p.w.watcher, refused)
		if again := p.kinds[i].again; again > 0 {
			p.lookAgain(again)
		}
	}
}

func byText(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }

// wanted are the kinds to watch. Pods of health checks are among them in any case: whether there are some is not known
// from the spec.
func (p *pass) wanted() sets.Set[kindwatch.Kind] {
	kinds := sets.New[kindwatch.Kind]()
	for _, k := range p.kinds {
		if k.watched {
			kinds.Insert(k.kind)
		}
	}
	kinds.Insert(record.HealthCheckPodKind)
	return kinds
}

func (p *pass) groups() sets.Set[string] {
	groups := sets.New[string]()
	for _, k := range p.kinds {
		groups.Insert(k.gvk.Group)
	}
	return groups
}

// see notes whether the objects of a kind can be seen.
func (k *seenKind) see(watcher *kindwatch.Watcher, refused sets.Set[kindwatch.Kind]) {
	switch {
	case !k.watched:
	case refused.Has(k.kind):
		k.watched, k.again = false, condition.SlowRetry()
		k.unseen = &condition.Problem{Reason: appsv1alpha1.ReasonKindTooLarge, Message: "Applications of the cluster name more kinds than Masthead watches."}
	default:
		state, _ := watcher.State(k.kind)
		k.unseen = stateProblem(state, k.gvk)
		k.syncing = state == kindwatch.StateSyncing
	}
}

// choose finds the objects that have to do with the Application, and decides about them.
func (p *pass) choose() {
	for i := range p.kinds {
		if p.kinds[i].unseen == nil {
			p.look(&p.kinds[i])
		}
	}
	p.discover()
	p.selection = p.selector.sort(p.kinds, p.patched)
	if p.sight.ObserveOnly {
		p.selection.adopt, p.selection.release = nil, nil
	}
	if p.undiscovered && p.asksToOwn() && !p.selector.orphaning {
		// What is owned may be what is discovered. To be released, and adopted again in a moment, would be to be left behind
		// if the Application is deleted in between.
		p.selection.release = nil
	}
	p.prune()
}

// prune forgets what was patched of objects that are not there any more.
func (p *pass) prune() {
	if len(p.t.patched) == 0 {
		p.t.patched = nil
		return
	}
	there := sets.New[types.UID]()
	for _, k := range p.kinds {
		for _, o := range k.objects {
			there.Insert(o.entry.UID)
		}
	}
	maps.DeleteFunc(p.t.patched, func(uid types.UID, _ string) bool { return !there.Has(uid) })
}

// look finds the objects of a kind that name the Application, or are owned by it.
func (p *pass) look(k *seenKind) {
	seen := map[types.NamespacedName]struct{}{}
	for _, index := range []string{record.AnnotationIndex(p.key), record.OwnerIndex(p.app.UID)} {
		entries, err := p.w.watcher.Lookup(k.kind, index)
		if err != nil {
			// Its state has just changed, which is an event.
			k.unseen, k.syncing, k.objects = stateProblem(kindwatch.StateSyncing, k.gvk), true, nil
			return
		}
		for _, e := range entries {
			rec := record.ComponentOf(e.Record)
			if _, ok := seen[e.Key]; ok || rec == nil || e.Key.Namespace != p.key.Namespace {
				continue
			}
			seen[e.Key] = struct{}{}
			k.objects = append(k.objects, object{kind: k.kind, entry: e, Component: rec})
		}
	}
}

// patched is whether the owner references of an object were written, and the watch shows what was before.
func (p *pass) patched(o object) bool {
	version, ok := p.t.patched[o.entry.UID]
	if ok && version != o.entry.ResourceVersion {
		delete(p.t.patched, o.entry.UID)
		return false
	}
	return ok
}

// observation is what the status follows from.
func (p *pass) observation() appstatus.Observation {
	state, _ := p.w.watcher.State(record.ApplicationKind)
	return appstatus.Observation{
		Application:  p.app,
		Components:   append(p.selector.views(p.app, p.kinds, p.refused), p.discoveredViews()...),
		Selected:     p.selection.selected,
		Dependencies: appstatus.DependenciesOf(p.app, state == kindwatch.StateSynced, p.w.application),
		HealthCheck:  p.healthCheck,
		OwnedKinds:   p.ownedKinds(),
		NotServed:    p.notServed,
	}
}

// letGo ends the watches of kinds that the Application does not name any more, and of which it owns nothing. One that
// cannot be seen is kept: what it has of references has to be removed as soon as it can be.
func (p *pass) letGo() {
	owned := sets.New(p.ownedKinds()...)
	before := len(p.kinds)
	p.kinds = slices.DeleteFunc(p.kinds, func(k seenKind) bool {
		return k.leaving && !k.syncing && !owned.Has(metav1.GroupVersionKind(k.gvk))
	})
	if len(p.kinds) < before {
		p.w.watch(p.key, p.t, p.wanted(), p.groups())
	}
}
