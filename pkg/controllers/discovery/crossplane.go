// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/managed"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Where no policy is in force, a Crossplane can be installed over the copies and their definitions. Its installer
// writes over definitions and leaves their labels, and it takes copies of CompositeResourceDefinitions for its own: it
// puts finalizers on them, and when one is deleted, it deletes the claims.

// foreignFinalizer returns a finalizer that somebody else has put on an object; nothing if there is none. Masthead puts
// none on what it puts into a cluster, and API servers two, to have dependents collected.
func foreignFinalizer(obj metav1.Object) string {
	for _, f := range obj.GetFinalizers() {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			return f
		}
	}
	return ""
}

// crossplaneAtWork is whether a cluster whose definition of CompositeResourceDefinitions is Masthead's has a Crossplane
// of its own all the same, or that this is not known yet. Where it does not become known soon, copies are put there:
// what keeps it from being known may be the definition, as somebody has changed it.
func (p *pass) crossplaneAtWork(kind kindwatch.Kind) (own *condition.Problem, waiting bool) {
	if state, _ := p.w.watcher.State(kind); state == kindwatch.StateSyncing {
		left := p.w.awaits(kind, p.clock.Now())
		if left > 0 {
			p.within(left)
		}
		return nil, left > 0
	}
	objects, err := p.w.watcher.List(kind)
	if err != nil {
		return nil, false
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, obj := range objects {
		if why := crossplanes(obj); why != "" {
			return &condition.Problem{Reason: ReasonOwnCrossplane, Message: fmt.Sprintf("%s %q %s: the cluster has a Crossplane of its own, or had one. What the hub offers is not "+
				"shown there any more, and what is there stays as it is.", kind.Kind, obj.GetName(), why)}, false
		}
	}
	return nil, false
}

// crossplanes returns what shows that a CompositeResourceDefinition is used by a Crossplane in its cluster; nothing if
// nothing does.
func crossplanes(xrd *unstructured.Unstructured) string {
	finalizer := foreignFinalizer(xrd)
	switch {
	case !managed.MarksOf(xrd).IsMastheads():
		return "was not put there by Masthead"
	case finalizer != "":
		return fmt.Sprintf("was put there by Masthead and bears the finalizer %q", multicluster.BoundedText(finalizer))
	}
	return ""
}
