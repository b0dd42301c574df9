// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"

	"github.com/masthead-dev/masthead/pkg/kindwatch"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// report computes the status of the Application, writes it if it has changed, and reports it to the hub.
func (p *pass) report(ctx context.Context) {
	o := p.observation()
	if p.settle(&o) {
		return
	}
	status := appstatus.Build(o, metav1.NewTime(p.r.clock.Now()))
	before := p.app
	if err := p.writeStatus(ctx, status); err != nil {
		p.notWritten(err)
		return
	}
	p.w.Announcements.Changed(before, status)
	now := *p.app
	now.Status = status
	p.r.observe(p.w, p.key, &now)
}

// observation is the input from which the status is computed.
func (p *pass) observation() appstatus.Observation {
	state, _ := p.w.Watcher.State(record.ApplicationKind)
	return appstatus.Observation{
		Application:  p.app,
		Components:   append(p.selector.views(p.app, p.kinds, p.refused), p.discoveredViews()...),
		Selected:     p.selection.selected,
		Dependencies: appstatus.BuildDependencies(p.app, state == kindwatch.StateSynced, p.w.Application),
		HealthCheck:  p.healthCheck,
		OwnedKinds:   p.ownedKinds(),
		NotServed:    p.notServed,
	}
}
