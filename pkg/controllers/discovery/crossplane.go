// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Where no policy is in force, a Crossplane can be installed over the copies and their definitions. Its installer
// overwrites definitions but keeps their labels. It adopts copies of CompositeResourceDefinitions: it adds finalizers
// to them, and when one is deleted, it deletes the claims.

// foreignFinalizer returns a finalizer that another client added to an object, or "" if there is none. Masthead adds
// none to what it creates in a cluster. API servers add two, for the garbage collection of dependents.
func foreignFinalizer(obj metav1.Object) string {
	for _, f := range obj.GetFinalizers() {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			return f
		}
	}
	return ""
}

// crossplaneAtWork returns the problem that a cluster whose definition of CompositeResourceDefinitions is Masthead's
// nevertheless runs its own Crossplane. While it is not known yet, that is pending. If it stays unknown for too long,
// copies are written anyway: a user may have changed the definition, which would keep it unknown.
func (p *pass) crossplaneAtWork(kind kindwatch.Kind) error {
	if state, _ := p.w.watcher.State(kind); state == kindwatch.StateSyncing {
		if left := p.w.awaits(kind, p.clock.Now()); left > 0 {
			return condition.PendingError{After: left}
		}
		return nil
	}
	objects, err := p.w.watcher.List(kind)
	if err != nil {
		return nil //nolint:nilerr // It is not watched, so no copies are written.
	}
	slices.SortFunc(objects, func(a, b *kindwatch.Item) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	for _, obj := range objects {
		if why := crossplanes(obj.Object()); why != "" {
			return condition.NewError(fleetv1alpha1.ReasonOwnCrossplane, fmt.Sprintf("%s %q %s: the cluster has, or had, its own Crossplane. What the hub offers is no longer "+
				"shown there, and what exists there is not changed.", kind.Kind, obj.Key.Name, why))
		}
	}
	return nil
}

// crossplanes returns the evidence that a Crossplane in the cluster uses a CompositeResourceDefinition, or "" if there
// is none.
func crossplanes(xrd *unstructured.Unstructured) string {
	finalizer := foreignFinalizer(xrd)
	switch {
	case !install.GetMarks(xrd).IsMastheads():
		return "was not created by Masthead"
	case finalizer != "":
		return fmt.Sprintf("was created by Masthead and has the finalizer %q", multicluster.BoundedText(finalizer))
	}
	return ""
}
