// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// handle is the handler of the watcher of a workload cluster: it finds the Applications to which an event matters.
func (r *reconciler) handle(w *workload.Cluster, e kindwatch.Event) {
	switch e.Kind {
	case record.OwnedDefinitionKind, record.ForeignDefinitionKind:
		w.DefinitionChanged(e)
	case record.DefinitionKind, record.APIServiceKind:
		w.Served(e)
	case record.ApplicationKind:
		r.applicationChanged(w, e)
		w.ComponentChanged(e)
	default:
		w.ComponentChanged(e)
	}
}

// applicationChanged handles events of the Applications of a cluster.
func (r *reconciler) applicationChanged(w *workload.Cluster, e kindwatch.Event) {
	if e.Type == kindwatch.StateChanged {
		if e.State == kindwatch.StateSynced {
			r.dropGone(w)
		}
		w.WakeLater(w.Keys()...)
		w.Enqueue()
		return
	}
	app, old := record.ApplicationIn(e.Entry), record.ApplicationIn(e.OldEntry)
	if app == nil {
		return
	}
	key := e.Entry.Key
	if e.Type == kindwatch.Deleted {
		r.forgetDeleted(w, key)
		return
	}
	w.Track(key, app)
	// Before any kind is watched, so that its first list has what all Applications look for.
	w.Wanted.Want(key, record.MarksWanted(app, w.VisibilityIn(key.Namespace)))
	if e.Initial {
		r.observe(w, key, app)
		return
	}
	if !e.SelfInduced {
		w.Wake(key)
	}
	if appstatus.ConcernsDependents(old, app) {
		w.Wake(w.Dependents(key)...)
	}
}

// dropGone forgets the Applications that were deleted between the previous watch of Applications and this one.
func (r *reconciler) dropGone(w *workload.Cluster) {
	entries, err := w.Watcher.Entries(record.ApplicationKind)
	if err != nil {
		return
	}
	there := make(map[record.ApplicationKey]types.UID, len(entries))
	for _, e := range entries {
		there[e.Key] = e.UID
	}
	for key, uid := range w.UIDs() {
		if there[key] != uid {
			r.forgetDeleted(w, key)
		}
	}
	for key := range w.TakeReported() {
		if _, ok := there[key]; !ok {
			r.forget(w, key)
		}
	}
}
