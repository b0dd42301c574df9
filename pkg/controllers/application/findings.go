// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// findings are what a cluster has of an Application, and what is to be done about it.
type findings struct {
	*scope
	kinds     seenKinds
	selection selection

	// discovered are the objects that the Application discovers, notServed the kinds of them that are not served, and
	// undiscovered reports whether some of them may not be known yet.
	discovered   []appstatus.ComponentView
	notServed    []string
	undiscovered bool
}

// reconcileApplication reconciles one Application.
func (r *reconciler) reconcileApplication(ctx context.Context, w *workload.Cluster, key record.ApplicationKey) (reconcile.Result, error) {
	s, err := r.newScope(w, key)
	switch {
	case err != nil:
	case w.CurrentMode() != workload.ModeEnabled:
		err = s.disable(ctx)
	default:
		err = s.run(ctx)
	}
	return condition.Result(err)
}

// run carries out the reconciliation. One step does not keep another from being tried.
func (s *scope) run(ctx context.Context) error {
	kinds, sought, watched := s.watch(ctx)
	f, chosen := s.choose(kinds, sought)
	errs := []error{watched, chosen}
	if s.selector.orphaning {
		errs = append(errs, f.own(ctx))
	} else {
		errs = append(errs, f.show(ctx))
	}
	if len(s.tracked.Patched) > 0 {
		errs = append(errs, condition.PendingError{After: catchUp})
	}
	return condition.Join(errs...)
}

// show checks the Application's health, and writes its status: before objects are adopted, and again if the adoption
// changed it.
func (f findings) show(ctx context.Context) error {
	view, checked := f.check(ctx)
	f, noted := f.note(ctx, view)
	owned := f.own(ctx)
	if noted != nil || f.superseded() {
		return condition.Join(checked, noted, owned)
	}
	reported := f.report(ctx, view)
	f.stopWatching()
	return condition.Join(checked, owned, reported)
}

// watch starts watching the kinds relevant to the Application: those it names, those it discovers, and those it used to
// name, until none of their objects is owned any more.
func (s *scope) watch(ctx context.Context) (seenKinds, sought, error) {
	named, sought := workload.Kinds(s.app), s.seek(ctx)
	leaving := formerKinds(s.app)
	for kind := range s.tracked.Kinds.Set() {
		if _, ok := named[kind.GroupVersionKind]; !ok && kind != record.HealthCheckPodKind {
			leaving[kind.GroupVersionKind] = struct{}{}
		}
	}
	wanted := maps.Clone(named)
	maps.Copy(wanted, sought.kinds)
	var kinds seenKinds
	for _, gvk := range slices.SortedFunc(maps.Keys(wanted), byText) {
		k := seenKind{NamedKind: s.w.Ask(ctx, gvk, s.assessor)}
		if _, ok := sought.kinds[gvk]; ok {
			admit(&k.NamedKind, s.visibility)
			delete(leaving, gvk)
		}
		_, ok := named[gvk]
		k.unnamed = !ok
		kinds = append(kinds, k)
	}
	for _, gvk := range slices.SortedFunc(maps.Keys(leaving), byText) {
		k := s.w.Ask(ctx, gvk, s.assessor)
		k.Leaving = true
		kinds = append(kinds, seenKind{NamedKind: k})
	}
	refused := s.w.Watch(s.key, s.tracked, kinds.wanted(), kinds.groups())
	var errs []error
	for i := range kinds {
		kinds[i].see(s.w.Watcher, refused)
		errs = append(errs, again(kinds[i].Unseen))
	}
	return kinds, sought, condition.Join(errs...)
}

// wanted are the kinds to watch. Pods of health checks are always included: the spec does not show whether some exist.
func (kinds seenKinds) wanted() sets.Set[kindwatch.Kind] {
	wanted := sets.New(record.HealthCheckPodKind)
	for _, k := range kinds {
		if k.Watched {
			wanted.Insert(k.Kind)
		}
	}
	return wanted
}

func (kinds seenKinds) groups() sets.Set[string] {
	groups := sets.New[string]()
	for _, k := range kinds {
		groups.Insert(k.GVK.Group)
	}
	return groups
}

// see records whether the objects of a kind can be observed.
func (k *seenKind) see(watcher *kindwatch.Watcher, refused sets.Set[kindwatch.Kind]) {
	switch {
	case !k.Watched:
	case refused.Has(k.Kind):
		k.Watched = false
		k.Unseen = &condition.Error{
			Reason: appsv1alpha1.ReasonKindTooLarge, Message: "Applications of the cluster name more kinds than Masthead watches.",
			RetryAfter: condition.SlowRetry(),
		}
	default:
		state, _ := watcher.State(k.Kind)
		k.Unseen = workload.StateProblem(state, k.GVK)
		k.Syncing = state == kindwatch.StateSyncing
	}
}

// choose finds the objects relevant to the Application, and decides about them.
func (s *scope) choose(kinds seenKinds, sought sought) (findings, error) {
	for i := range kinds {
		if kinds[i].Unseen == nil {
			s.observe(&kinds[i])
		}
	}
	d := s.discover(kinds, sought)
	f := findings{scope: s, kinds: kinds, discovered: d.views, notServed: d.notServed, undiscovered: d.undiscovered}
	f.selection = s.selector.sort(kinds, s.patched)
	if s.visibility.ObserveOnly {
		f.selection.adopt, f.selection.release = nil, nil
	}
	if f.undiscovered && s.asksToOwn() && !s.selector.orphaning {
		// An owned object may be a discovered one. If it were released and adopted again in a moment, it would be left behind
		// when the Application is deleted in between.
		f.selection.release = nil
	}
	f.prune()
	if d.unlisted {
		// A complete list without changes triggers no event.
		return f, condition.PendingError{After: catchUp}
	}
	return f, nil
}

// prune forgets patches of objects that no longer exist.
func (f findings) prune() {
	if len(f.tracked.Patched) == 0 {
		f.tracked.Patched = nil
		return
	}
	there := sets.New[types.UID]()
	for _, k := range f.kinds {
		for _, o := range k.objects {
			there.Insert(o.entry.UID)
		}
	}
	maps.DeleteFunc(f.tracked.Patched, func(uid types.UID, _ string) bool { return !there.Has(uid) })
}

// observe finds the objects of a kind that name the Application, or are owned by it.
func (s *scope) observe(k *seenKind) {
	seen := map[types.NamespacedName]struct{}{}
	for _, index := range []string{record.AnnotationIndex(s.key), record.OwnerIndex(s.app.UID)} {
		entries, err := s.w.Watcher.Lookup(k.Kind, index)
		if err != nil {
			// Its state has just changed, which triggers an event.
			k.Unseen, k.Syncing, k.objects = workload.StateProblem(kindwatch.StateSyncing, k.GVK), true, nil
			return
		}
		for _, e := range entries {
			rec := record.GetComponent(e.Record)
			if _, ok := seen[e.Key]; ok || rec == nil || e.Key.Namespace != s.key.Namespace {
				continue
			}
			seen[e.Key] = struct{}{}
			k.objects = append(k.objects, object{kind: k.Kind, entry: e, Component: rec})
		}
	}
}

// patched reports whether an object's owner references were written, and the watch still shows the previous version.
func (s *scope) patched(o object) bool {
	version, ok := s.tracked.Patched[o.entry.UID]
	if ok && version != o.entry.ResourceVersion {
		delete(s.tracked.Patched, o.entry.UID)
		return false
	}
	return ok
}

// stopWatching stops watching kinds that the Application no longer names and of which it owns nothing. A kind that
// cannot be observed is kept: its references have to be removed as soon as possible.
func (f findings) stopWatching() {
	owned := sets.New(f.ownedKinds()...)
	kept := slices.DeleteFunc(slices.Clone(f.kinds), func(k seenKind) bool {
		return k.Leaving && !k.Syncing && !owned.Has(metav1.GroupVersionKind(k.GVK))
	})
	if len(kept) < len(f.kinds) {
		f.w.Watch(f.key, f.tracked, kept.wanted(), kept.groups())
	}
}
