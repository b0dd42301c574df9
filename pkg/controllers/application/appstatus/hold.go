// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// ListsPart reports whether the status lists only some of the components not observed yet. The others are only counted,
// and counts cannot be held for one kind: the whole status is kept, or it would briefly claim that there is no more
// than it lists.
func (o *Observation) ListsPart() bool {
	old := o.Application.Status
	if old.Counts == nil {
		return false
	}
	before := saidBefore(old)
	found := int(old.Counts.Discovered) > len(old.Discovered)
	named := int(old.Counts.Total-old.Counts.Discovered) > len(old.Components)
	return slices.ContainsFunc(o.Components, func(v ComponentView) bool {
		if v.discovered {
			return v.Syncing && found
		}
		_, listed := before[v.key()]
		return v.Syncing && named && !listed
	})
}

// Hold shows components that are not observed yet as in the status. It returns false if the status does not list some
// of them.
func (o *Observation) Hold() (all bool) {
	old, all := o.Application.Status, true
	before := saidBefore(old)
	if old.ObservedGeneration == o.Application.Generation {
		// Nothing was found of this kind, so it has no entries.
		o.Components = slices.DeleteFunc(o.Components, func(v ComponentView) bool {
			_, said := before[v.key()]
			return v.Syncing && v.discovered && v.Name == "" && !said
		})
	}
	for i := range o.Components {
		v := &o.Components[i]
		if !v.Syncing {
			continue
		}
		was, listed := before[v.key()]
		if !listed || was.Group != v.Kind.Group || was.Version != v.Kind.Version || was.Kind != v.Kind.Kind {
			all = false
			continue
		}
		v.hold(was)
		if old.Counts != nil {
			o.Selected = old.Counts.Selected
		}
	}
	if o.HealthCheck.Syncing {
		c := meta.FindStatusCondition(old.Conditions, appsv1alpha1.ConditionHealthCheckPassed)
		if c == nil || c.ObservedGeneration != o.Application.Generation {
			return false
		}
		o.HealthCheck.Ready, o.HealthCheck.Problem = corev1.ConditionStatus(c.Status), &condition.Error{Reason: c.Reason, Message: c.Message}
	}
	return all
}

// hold shows a component with its previous status.
func (v *ComponentView) hold(was appsv1alpha1.ComponentStatus) {
	said := &condition.Error{Reason: was.Reason, Message: strings.TrimPrefix(was.Message, v.finishedMessage()+" ")}
	v.held, v.Unseen, v.Problem = &was, nil, nil
	switch {
	case was.Installed == corev1.ConditionUnknown:
		v.Unseen = said
	case was.Reason == appsv1alpha1.ReasonOwnershipForbidden:
		v.Problem = said
	}
}
