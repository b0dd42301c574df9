// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// handle is the handler of the watcher of a workload cluster: it finds the Applications to which an event matters.
func (r *reconciler) handle(w *workload, e kindwatch.Event) {
	switch e.Kind {
	case record.OwnedDefinitionKind, record.ForeignDefinitionKind:
		w.definitionChanged(e)
	case record.DefinitionKind, record.APIServiceKind:
		w.served(e)
	case record.ApplicationKind:
		r.applicationChanged(w, e)
		w.componentChanged(e)
	default:
		w.componentChanged(e)
	}
}

// componentChanged wakes the Application that an object names, the one that it named before, and those that own it.
func (w *workload) componentChanged(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		w.wakeLater(w.usersOf(e.Kind)...)
		return
	}
	if e.Initial {
		// That all of them are known is an event of its own.
		return
	}
	keys := sets.New[record.ApplicationKey]()
	for _, entry := range []*kindwatch.Entry{e.Entry, e.OldEntry} {
		keys.Insert(w.applicationsOf(e.Kind, entry)...)
	}
	w.wake(slices.Collect(maps.Keys(keys))...)
}

// applicationsOf are the Applications to which an object matters: Retrieving Applications, as the KEP calls it. One
// that does not name the kind is none of them.
func (w *workload) applicationsOf(kind kindwatch.Kind, entry *kindwatch.Entry) []record.ApplicationKey {
	if entry == nil {
		return nil
	}
	var keys []record.ApplicationKey
	if pod, ok := entry.Record.(*record.Pod); ok {
		return w.ownersOf(kind, []record.Owner{{UID: pod.Owner}})
	}
	rec := record.ComponentOf(entry.Record)
	if rec == nil {
		return nil
	}
	keys = w.ownersOf(kind, rec.Owners)
	if m := record.MarkingsOf(entry.Record); m != nil {
		keys = append(keys, w.wanted.UsersOf(m.Marks)...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users[kind].Has(rec.Application) {
		keys = append(keys, rec.Application)
	}
	return keys
}

func (w *workload) ownersOf(kind kindwatch.Kind, owners []record.Owner) []record.ApplicationKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []record.ApplicationKey
	for _, o := range owners {
		if key, ok := w.byUID[o.UID]; ok && w.users[kind].Has(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// applicationChanged follows the Applications of a cluster.
func (r *reconciler) applicationChanged(w *workload, e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		if e.State == kindwatch.StateSynced {
			r.dropGone(w)
		}
		w.wakeLater(w.keys()...)
		w.enqueue()
		return
	}
	app, old := record.ApplicationIn(e.Entry), record.ApplicationIn(e.OldEntry)
	if app == nil {
		return
	}
	key := e.Entry.Key
	if e.Type == kindwatch.Deleted {
		r.gone(w, key)
		return
	}
	w.track(key, app)
	// Before any kind is watched, so that the first list of it brings what all of them look for.
	w.wanted.Want(key, record.MarksWanted(app, w.sightOf(key.Namespace)))
	if e.Initial {
		r.observe(w, key, app)
		return
	}
	if !e.Echo {
		w.wake(key)
	}
	if appstatus.ConcernsDependents(old, app) {
		w.wake(w.dependentsOf(key)...)
	}
}

// gone forgets an Application that has gone. What it owned is the garbage collector's.
func (r *reconciler) gone(w *workload, key record.ApplicationKey) {
	w.untrack(key)
	r.forget(w, key)
	w.wake(w.dependentsOf(key)...)
}

// dropGone forgets the Applications that went while nobody looked: the watch of Applications was stopped, and is
// another one now.
func (r *reconciler) dropGone(w *workload) {
	entries, err := w.watcher.Entries(record.ApplicationKind)
	if err != nil {
		return
	}
	there := make(map[record.ApplicationKey]types.UID, len(entries))
	for _, e := range entries {
		there[e.Key] = e.UID
	}
	for key, uid := range w.uids() {
		if there[key] != uid {
			r.gone(w, key)
		}
	}
	for key := range w.takeTold() {
		if _, ok := there[key]; !ok {
			r.forget(w, key)
		}
	}
}

// definitionChanged is told what happens to the definition of Applications, and to others that Masthead put into the
// cluster.
func (w *workload) definitionChanged(e kindwatch.Event) {
	switch {
	case e.Type == kindwatch.StateChanged:
		w.enqueue()
	case !e.Initial && (e.Kind == record.ForeignDefinitionKind || e.Object.GetName() == definition.Name):
		w.watcher.Poke(record.ApplicationKind.GroupResource())
		w.enqueue()
	}
}

// askAnew has everything asked for anew that was asked before definitions, or API services, were watched: nobody saw
// what changed until then. Neither waits for the other, which may never be known.
func (w *workload) askAnew() {
	w.resolver.ForgetAll()
	w.forgetAllUnanswered()
	w.wakeLater(w.keys()...)
}

// served is told that a definition, or the registration of a group, came, changed or went. What is known of the kinds
// of the group is asked for anew.
func (w *workload) served(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		if e.State == kindwatch.StateSynced {
			w.askAnew()
		}
		return
	}
	if e.Initial || e.Entry == nil {
		return
	}
	name := e.Entry.Key.Name
	_, group, _ := strings.Cut(name, ".")
	if e.Kind == record.DefinitionKind {
		w.watcher.Poke(schema.ParseGroupResource(name))
	}
	w.resolver.Forget(group)
	w.forgetUnanswered(group)
	keys, kinds := w.usersOfGroup(group)
	if e.Kind == record.APIServiceKind {
		for _, kind := range kinds {
			w.watcher.Poke(kind.GroupResource())
		}
	}
	w.wakeLater(keys...)
}
