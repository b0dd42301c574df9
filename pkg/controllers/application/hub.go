// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
)

// observe reports the health of an Application to the hub.
func (r *reconciler) observe(w *workload.Cluster, key record.ApplicationKey, app *appsv1alpha1.Application) {
	s := appstatus.Summarize(app)
	record.Share(&w.Texts, &s.ApplicationType, &s.Version, &s.Message)
	r.ifCurrent(w, func() {
		if w.Has(key, app.UID) {
			r.rollup.Observe(w.Name, key, s)
		}
	})
}

// forget removes a deleted Application from the hub's report.
func (r *reconciler) forget(w *workload.Cluster, key record.ApplicationKey) {
	r.ifCurrent(w, func() { r.rollup.Forget(w.Name, key) })
}

// forgetDeleted forgets a deleted Application. Its objects are left to the garbage collector.
func (r *reconciler) forgetDeleted(w *workload.Cluster, key record.ApplicationKey) {
	w.Untrack(key)
	r.forget(w, key)
	w.Wake(w.Dependents(key)...)
}

// unwatched reports to the hub that the Applications of a cluster are not watched, and why.
func (r *reconciler) unwatched(w *workload.Cluster, reason, message string) {
	r.ifCurrent(w, func() {
		r.metrics.forgetCluster(w.Name)
		r.rollup.Unwatched(w.Name, condition.Error{Reason: reason, Message: message})
	})
}
