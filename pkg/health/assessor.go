// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// assessor is what is known about kinds. It does not change.
type assessor struct {
	// hub are the HealthRules of the hub, and library those that are shipped.
	hub, library ruleSet

	// chains are the rules of kinds that have been asked for.
	chains chains

	kinds map[schema.GroupKind]assess

	// bare are the kinds whose objects are well when they are there.
	bare sets.Set[schema.GroupKind]
}

// New returns an Assessor that follows the rules, and, where these have nothing to say, what is known about kinds,
// without the library. Of several rules for the same kinds it asks the first, and the next one only if that has nothing
// to say.
func New(rules ...*Rule) Assessor { return newAssessor(nil, rules) }

func newAssessor(library ruleSet, rules []*Rule) *assessor {
	return &assessor{hub: newRuleSet(rules), library: library, kinds: builtins(), bare: bareKinds()}
}

// NeedsObject is whether objects of a kind have to be read whole. A rule for a kind whose metadata is enough may be for
// one of its versions only; then all are read.
func (a *assessor) NeedsObject(kind schema.GroupKind) bool {
	if !a.bare.Has(kind) {
		return true
	}
	for s := range a.hub {
		if s.Group == kind.Group && s.Kind == kind.Kind {
			return true
		}
	}
	return false
}

// rulesFor are the rules for a kind, in the order in which they are asked. Wildcards are for kinds that Masthead does
// not know itself: a rule for everything neither has every Secret read whole nor changes what a Deployment is.
func (a *assessor) rulesFor(gvk schema.GroupVersionKind) []*Rule {
	return a.chains.of(gvk, func() []*Rule {
		kind := gvk.GroupKind()
		known := a.bare.Has(kind) || a.kinds[kind] != nil || kind == applicationKind()
		return chain(gvk, known, a.hub, a.library)
	})
}

// Assess says how an object fares.
func (a *assessor) Assess(obj *unstructured.Unstructured, statusExpected bool) (result Result) {
	defer func() {
		// What reads objects here expects anything, but some of it is others' code.
		if recover() != nil {
			result = unknown(ReasonUnreadable, "Masthead cannot make sense of the object")
		}
		result = valid(result)
	}()
	return a.assess(obj, statusExpected)
}

func (a *assessor) assess(obj *unstructured.Unstructured, statusExpected bool) Result {
	gvk := obj.GroupVersionKind()
	kind := gvk.GroupKind()
	object := fields(obj.Object)
	if object.text("metadata", "deletionTimestamp") != "" {
		return terminating(object)
	}
	for _, rule := range a.rulesFor(gvk) {
		if result, decided := rule.assess(object, statusExpected); decided {
			return result
		}
	}
	if a.bare.Has(kind) {
		return healthy()
	}
	if kind == applicationKind() {
		return application(object)
	}
	builtin := a.kinds[kind]
	if builtin == nil && object.hasNoStatus() {
		return noStatus(statusExpected)
	}
	object, result, decided := observed(object)
	if decided {
		return result
	}
	if builtin != nil {
		if result, decided := builtin(object); decided {
			return result
		}
		return kstatus(object)
	}
	return generic(object)
}

// terminating is how every object fares that is being deleted. What it waits for is what people want to know.
func terminating(object fields) Result {
	list, _ := object.at("metadata", "finalizers").([]any)
	var waits []string
	for _, finalizer := range list {
		if name, ok := finalizer.(string); ok {
			waits = append(waits, name)
		}
	}
	if len(waits) == 0 {
		return progressing(ReasonTerminating, "It is being deleted")
	}
	return progressing(ReasonTerminating, "It is being deleted and waits for its finalizers: "+strings.Join(waits, ", "))
}

// application is how one of our own kind fares. What it said about an older generation says nothing about this one,
// which can name other components.
func application(object fields) Result {
	if object.hasNoStatus() {
		return noStatus(true)
	}
	if object.number(0, "metadata", "generation") != object.number(0, "status", "observedGeneration") {
		return unknown(ReasonNotObserved, "Masthead has not seen the latest change of the Application yet")
	}
	message := object.text("status", "message")
	switch h := appsv1alpha1.Health(object.text("status", "health")); h {
	case appsv1alpha1.HealthHealthy:
		return healthy()
	case appsv1alpha1.HealthSuspended:
		return suspended(appsv1alpha1.ReasonComponentsSuspended, message)
	case appsv1alpha1.HealthProgressing:
		return progressing(appsv1alpha1.ReasonComponentsProgressing, message)
	case appsv1alpha1.HealthUnknown:
		return unknown(appsv1alpha1.ReasonComponentsUnknown, message)
	case appsv1alpha1.HealthMissing:
		// The Application is there, so it is not missing itself. It lacks a part and does not mend by itself.
		return degraded(appsv1alpha1.ReasonComponentsMissing, message)
	case appsv1alpha1.HealthDegraded:
		return degraded(appsv1alpha1.ReasonComponentsDegraded, message)
	default:
		return unknown(ReasonUnreadable, fmt.Sprintf("The health %q of the Application is none that Masthead knows", h))
	}
}
