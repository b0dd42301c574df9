// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// While a kind is being read for the first time, its components stay as the status has them, and everything else is
// shown as it is. Without that, every restart would write that nothing is known, and then once more what was there
// before.
const (
	// patience is how long a status waits for a component of which it says nothing yet.
	patience = 5 * time.Second

	// statusPatience is how long a status keeps what it says of a component that cannot be seen yet. When many clusters
	// are read at once, kinds wait for their turn.
	statusPatience = 2 * time.Minute
)

// settle has what is not known yet shown as the status has it. It returns true if the status has to wait for it
// altogether.
func (p *pass) settle(o *observation) (wait bool) {
	waiting := o.healthCheck.Syncing || slices.ContainsFunc(o.components, func(v componentView) bool { return v.syncing })
	since := p.w.settling(p.t, waiting)
	if !waiting || since >= statusPatience {
		return false
	}
	if o.listsPart() {
		p.lookAgain(statusPatience - since)
		return true
	}
	if !o.hold() && since < patience {
		p.lookAgain(patience - since)
		return true
	}
	p.lookAgain(statusPatience - since)
	return false
}

// settling returns for how long an Application has been waiting for what is about to be known.
func (w *workload) settling(t *tracked, waiting bool) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	switch {
	case !waiting:
		t.settlingSince = time.Time{}
		return 0
	case t.settlingSince.IsZero():
		t.settlingSince = now
	}
	since := now.Sub(t.settlingSince)
	if since < statusPatience {
		// What it waits for is acted upon at once.
		t.started = time.Time{}
	}
	return since
}

// listsPart is whether the status lists only a part of what is not known yet. What it says of the rest are counts,
// which cannot be held for one kind alone: the status stays as it is, whole, or it would say for a moment that there is
// no more than it lists.
func (o *observation) listsPart() bool {
	old := o.application.Status
	if old.Counts == nil {
		return false
	}
	before := saidBefore(old)
	found := int(old.Counts.Discovered) > len(old.Discovered)
	named := int(old.Counts.Total-old.Counts.Discovered) > len(old.Components)
	return slices.ContainsFunc(o.components, func(v componentView) bool {
		if v.discovered {
			return v.syncing && found
		}
		_, listed := before[v.key()]
		return v.syncing && named && !listed
	})
}

// hold makes what is not known yet what the status says of it. It returns false if the status says nothing of some of
// it.
func (o *observation) hold() (all bool) {
	old, all := o.application.Status, true
	before := saidBefore(old)
	if old.ObservedGeneration == o.application.Generation {
		// Nothing was found of such a kind, so nothing is said of it.
		o.components = slices.DeleteFunc(o.components, func(v componentView) bool {
			_, said := before[v.key()]
			return v.syncing && v.discovered && v.name == "" && !said
		})
	}
	for i := range o.components {
		v := &o.components[i]
		if !v.syncing {
			continue
		}
		was, listed := before[v.key()]
		if !listed || was.Group != v.kind.Group || was.Version != v.kind.Version || was.Kind != v.kind.Kind {
			all = false
			continue
		}
		v.hold(was)
		if old.Counts != nil {
			o.selected = old.Counts.Selected
		}
	}
	if o.healthCheck.Syncing {
		c := meta.FindStatusCondition(old.Conditions, appsv1alpha1.ConditionHealthCheckPassed)
		if c == nil || c.ObservedGeneration != o.application.Generation {
			return false
		}
		o.healthCheck.Ready, o.healthCheck.Problem = corev1.ConditionStatus(c.Status), &condition.Problem{Reason: c.Reason, Message: c.Message}
	}
	return all
}

// hold has a component shown as a status has it.
func (v *componentView) hold(was appsv1alpha1.ComponentStatus) {
	said := &condition.Problem{Reason: was.Reason, Message: was.Message}
	v.held, v.unseen, v.problem = &was, nil, nil
	switch {
	case was.Installed == corev1.ConditionUnknown:
		v.unseen = said
	case was.Reason == appsv1alpha1.ReasonOwnershipForbidden:
		v.problem = said
	}
}
