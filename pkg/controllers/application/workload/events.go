// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// ComponentChanged wakes the Application that an object names, the one it named before, and those that own it.
func (w *Cluster) ComponentChanged(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		w.WakeLater(w.Users(e.Kind)...)
		return
	}
	if e.Initial {
		// A complete list triggers its own event.
		return
	}
	keys := sets.New[record.ApplicationKey]()
	for _, entry := range []*kindwatch.Entry{e.Entry, e.OldEntry} {
		keys.Insert(w.applicationsFor(e.Kind, entry)...)
	}
	w.Wake(slices.Collect(maps.Keys(keys))...)
}

// applicationsFor are the Applications affected by an object: Retrieving Applications in the KEP. Those that do not
// name the kind are excluded.
func (w *Cluster) applicationsFor(kind kindwatch.Kind, entry *kindwatch.Entry) []record.ApplicationKey {
	if entry == nil {
		return nil
	}
	var keys []record.ApplicationKey
	if pod, ok := entry.Record.(*record.Pod); ok {
		return w.owners(kind, []record.Owner{{UID: pod.Owner}})
	}
	rec := record.GetComponent(entry.Record)
	if rec == nil {
		return nil
	}
	keys = w.owners(kind, rec.Owners)
	if m := record.GetMarkings(entry.Record); m != nil {
		keys = append(keys, w.Wanted.Users(m.Marks)...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users[kind].Has(rec.Application) {
		keys = append(keys, rec.Application)
	}
	return keys
}

func (w *Cluster) owners(kind kindwatch.Kind, owners []record.Owner) []record.ApplicationKey {
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

// DefinitionChanged handles events of the definition of Applications, and of others that Masthead installed in the
// cluster.
func (w *Cluster) DefinitionChanged(e kindwatch.Event) {
	switch {
	case e.Type == kindwatch.StateChanged:
		w.Enqueue()
	case !e.Initial && (e.Kind == record.ForeignDefinitionKind || e.Object.GetName() == definition.Name):
		w.Watcher.Retry(record.ApplicationKind.GroupResource())
		w.Enqueue()
	}
}

// resolveAgain invalidates what was resolved before definitions, or API services, were watched: changes until then were
// missed. Neither waits for the other, which may never be listed.
func (w *Cluster) resolveAgain() {
	w.resolver.ForgetAll()
	w.forgetAllUnanswered()
	w.WakeLater(w.Keys()...)
}

// Served handles the creation, change or deletion of a definition or of a group's registration. The kinds of the group
// are resolved again.
func (w *Cluster) Served(e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		if e.State == kindwatch.StateSynced {
			w.resolveAgain()
		}
		return
	}
	if e.Initial || e.Entry == nil {
		return
	}
	name := e.Entry.Key.Name
	_, group, _ := strings.Cut(name, ".")
	if e.Kind == record.DefinitionKind {
		w.Watcher.Retry(schema.ParseGroupResource(name))
	}
	w.resolver.Forget(group)
	w.forgetUnanswered(group)
	keys, kinds := w.usersOfGroup(group)
	if e.Kind == record.APIServiceKind {
		for _, kind := range kinds {
			w.Watcher.Retry(kind.GroupResource())
		}
	}
	w.WakeLater(keys...)
}
