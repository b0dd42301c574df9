// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// report writes the status of the Application, and says when it has to be computed again.
func (f findings) report(ctx context.Context, view healthcheck.View) error {
	o := f.observation(view)
	var errs []error
	for _, c := range o.Components {
		errs = append(errs, again(c.Problem))
	}
	whole, err := f.settle(&o)
	_, written := f.update(ctx, o, whole)
	return condition.Join(append(errs, err, written)...)
}

// update computes the status, writes it if it has changed, and reports it to the hub. While it is withheld, only the
// kinds of objects to adopt are written. It returns the scope with the result.
func (f findings) update(ctx context.Context, o appstatus.Observation, whole bool) (*scope, error) {
	status := f.app.Status
	switch {
	case whole:
		status = appstatus.Build(o, metav1.NewTime(f.r.clock.Now()))
	case len(f.selection.adopt) > 0:
		status.OwnedKinds = o.OwnedKinds
	}
	s, err := f.writeStatus(ctx, status)
	if err != nil || !whole {
		return s, err
	}
	if s != f.scope { // It was written.
		f.w.Announcements.Changed(f.app, status)
	}
	now := *s.app
	now.Status = status
	f.r.observe(f.w, f.key, &now)
	return s, nil
}

// observation is the input from which the status is computed.
func (f findings) observation(view healthcheck.View) appstatus.Observation {
	state, _ := f.w.Watcher.State(record.ApplicationKind)
	return appstatus.Observation{
		Application:  f.app,
		Components:   append(f.selector.views(f.app, f.kinds, f.refused), f.discoveredViews()...),
		Selected:     f.selection.selected,
		Dependencies: appstatus.BuildDependencies(f.app, state == kindwatch.StateSynced, f.w.Application),
		HealthCheck:  view,
		OwnedKinds:   f.ownedKinds(),
		NotServed:    f.notServed,
	}
}
