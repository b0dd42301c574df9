// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// reconcileApplication reconciles one Application.
func (r *reconciler) reconcileApplication(ctx context.Context, w *workload.Cluster, key record.ApplicationKey) (reconcile.Result, error) {
	p, err := r.newPass(w, key)
	if p == nil || err != nil {
		return reconcile.Result{}, err
	}
	if w.CurrentMode() != workload.ModeEnabled {
		return p.disable(ctx)
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
	p.stopWatching()
	return p.result()
}

func (p *pass) result() (reconcile.Result, error) {
	if err := errors.Join(p.errs...); err != nil {
		return reconcile.Result{}, err
	}
	if len(p.t.Patched) > 0 {
		p.lookAgain(catchUp)
	}
	return reconcile.Result{RequeueAfter: p.again}, nil
}

// watch starts watching the kinds relevant to the Application: those it names, those it discovers, and those it used to
// name, until none of their objects is owned any more.
func (p *pass) watch(ctx context.Context) {
	named, sought := workload.Kinds(p.app), p.seek(ctx)
	leaving := formerKinds(p.app)
	for kind := range p.t.Kinds.Set() {
		if _, ok := named[kind.GroupVersionKind]; !ok && kind != record.HealthCheckPodKind {
			leaving[kind.GroupVersionKind] = struct{}{}
		}
	}
	wanted := maps.Clone(named)
	maps.Copy(wanted, sought)
	for _, gvk := range slices.SortedFunc(maps.Keys(wanted), byText) {
		k := seenKind{NamedKind: p.w.Ask(ctx, gvk, p.assessor)}
		if _, ok := sought[gvk]; ok {
			admit(&k.NamedKind, p.sight)
			delete(leaving, gvk)
		}
		_, ok := named[gvk]
		k.unnamed = !ok
		p.kinds = append(p.kinds, k)
	}
	for _, gvk := range slices.SortedFunc(maps.Keys(leaving), byText) {
		k := p.w.Ask(ctx, gvk, p.assessor)
		k.Leaving = true
		p.kinds = append(p.kinds, seenKind{NamedKind: k})
	}
	refused := p.w.Watch(p.key, p.t, p.wanted(), p.groups())
	for i := range p.kinds {
		p.kinds[i].see(p.w.Watcher, refused)
		if again := p.kinds[i].Again; again > 0 {
			p.lookAgain(again)
		}
	}
}

// wanted are the kinds to watch. Pods of health checks are always included: the spec does not show whether some exist.
func (p *pass) wanted() sets.Set[kindwatch.Kind] {
	kinds := sets.New[kindwatch.Kind]()
	for _, k := range p.kinds {
		if k.Watched {
			kinds.Insert(k.Kind)
		}
	}
	kinds.Insert(record.HealthCheckPodKind)
	return kinds
}

func (p *pass) groups() sets.Set[string] {
	groups := sets.New[string]()
	for _, k := range p.kinds {
		groups.Insert(k.GVK.Group)
	}
	return groups
}

// see records whether the objects of a kind can be observed.
func (k *seenKind) see(watcher *kindwatch.Watcher, refused sets.Set[kindwatch.Kind]) {
	switch {
	case !k.Watched:
	case refused.Has(k.Kind):
		k.Watched, k.Again = false, condition.SlowRetry()
		k.Unseen = &condition.Error{Reason: appsv1alpha1.ReasonKindTooLarge, Message: "Applications of the cluster name more kinds than Masthead watches."}
	default:
		state, _ := watcher.State(k.Kind)
		k.Unseen = workload.StateProblem(state, k.GVK)
		k.Syncing = state == kindwatch.StateSyncing
	}
}

// choose finds the objects relevant to the Application, and decides about them.
func (p *pass) choose() {
	for i := range p.kinds {
		if p.kinds[i].Unseen == nil {
			p.observe(&p.kinds[i])
		}
	}
	p.discover()
	p.selection = p.selector.sort(p.kinds, p.patched)
	if p.sight.ObserveOnly {
		p.selection.adopt, p.selection.release = nil, nil
	}
	if p.undiscovered && p.asksToOwn() && !p.selector.orphaning {
		// An owned object may be a discovered one. If it were released and adopted again in a moment, it would be left behind
		// when the Application is deleted in between.
		p.selection.release = nil
	}
	p.prune()
}

// prune forgets patches of objects that no longer exist.
func (p *pass) prune() {
	if len(p.t.Patched) == 0 {
		p.t.Patched = nil
		return
	}
	there := sets.New[types.UID]()
	for _, k := range p.kinds {
		for _, o := range k.objects {
			there.Insert(o.entry.UID)
		}
	}
	maps.DeleteFunc(p.t.Patched, func(uid types.UID, _ string) bool { return !there.Has(uid) })
}

// observe finds the objects of a kind that name the Application, or are owned by it.
func (p *pass) observe(k *seenKind) {
	seen := map[types.NamespacedName]struct{}{}
	for _, index := range []string{record.AnnotationIndex(p.key), record.OwnerIndex(p.app.UID)} {
		entries, err := p.w.Watcher.Lookup(k.Kind, index)
		if err != nil {
			// Its state has just changed, which triggers an event.
			k.Unseen, k.Syncing, k.objects = workload.StateProblem(kindwatch.StateSyncing, k.GVK), true, nil
			return
		}
		for _, e := range entries {
			rec := record.GetComponent(e.Record)
			if _, ok := seen[e.Key]; ok || rec == nil || e.Key.Namespace != p.key.Namespace {
				continue
			}
			seen[e.Key] = struct{}{}
			k.objects = append(k.objects, object{kind: k.Kind, entry: e, Component: rec})
		}
	}
}

// patched reports whether an object's owner references were written, and the watch still shows the previous version.
func (p *pass) patched(o object) bool {
	version, ok := p.t.Patched[o.entry.UID]
	if ok && version != o.entry.ResourceVersion {
		delete(p.t.Patched, o.entry.UID)
		return false
	}
	return ok
}

// stopWatching stops watching kinds that the Application no longer names and of which it owns nothing. A kind that
// cannot be observed is kept: its references have to be removed as soon as possible.
func (p *pass) stopWatching() {
	owned := sets.New(p.ownedKinds()...)
	before := len(p.kinds)
	p.kinds = slices.DeleteFunc(p.kinds, func(k seenKind) bool {
		return k.Leaving && !k.Syncing && !owned.Has(metav1.GroupVersionKind(k.GVK))
	})
	if len(p.kinds) < before {
		p.w.Watch(p.key, p.t, p.wanted(), p.groups())
	}
}
