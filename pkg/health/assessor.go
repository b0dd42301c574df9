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

// assessor holds the rules per kind. It is immutable.
type assessor struct {
	// hub are the HealthRules of the hub, and library the shipped rules.
	hub, library ruleSet

	// chains caches the rules of kinds.
	chains chains

	kinds map[schema.GroupKind]assess

	// bare are the kinds whose objects are healthy if they exist.
	bare sets.Set[schema.GroupKind]
}

// New returns an Assessor that applies the rules and then Masthead's built-in checks, without the library. Of several
// rules for the same kind the first is evaluated, and the next one only if it decides nothing.
func New(rules ...*Rule) Assessor { return newAssessor(nil, rules) }

func newAssessor(library ruleSet, rules []*Rule) *assessor {
	return &assessor{hub: newRuleSet(rules), library: library, kinds: builtins(), bare: bareKinds()}
}

// NeedsObject reports whether objects of a kind must be read whole. A rule for a metadata-only kind may be limited to
// one version; then all versions are read whole.
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

// rulesFor returns the rules for a kind, in evaluation order. Wildcards apply only to kinds unknown to Masthead: a rule
// for everything neither reads every Secret whole nor changes the health of Deployments.
func (a *assessor) rulesFor(gvk schema.GroupVersionKind) []*Rule {
	return a.chains.of(gvk, func() []*Rule {
		kind := gvk.GroupKind()
		known := a.bare.Has(kind) || a.kinds[kind] != nil || kind == applicationKind()
		return chain(gvk, known, a.hub, a.library)
	})
}

// Assess returns the health of an object.
func (a *assessor) Assess(obj *unstructured.Unstructured, statusExpected bool) (result Result) {
	defer func() {
		// Masthead's own code tolerates any object, but third-party code is called, too.
		if recover() != nil {
			result = unknown(appsv1alpha1.ReasonUnreadable, "Masthead cannot interpret the object")
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
			if rule.shipped {
				return unlessAlarmed(object, result, rule.mentions)
			}
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
	if builtin == nil {
		return generic(object)
	}
	result, decided = builtin(object)
	if !decided {
		result = kstatus(object)
	}
	if result.Health != appsv1alpha1.HealthHealthy {
		return result
	}
	return unlessAlarmed(object, result, func(string) bool { return false })
}

// unlessAlarmed replaces a Result that is Healthy or Progressing if a condition reports a failure. What has judged the
// object says which conditions it has taken into account.
func unlessAlarmed(object fields, result Result, known func(conditionType string) bool) Result {
	if severity(result.Health) > severity(appsv1alpha1.HealthProgressing) || result.Reason == appsv1alpha1.ReasonNotObserved {
		return result
	}
	if alarm := alarmed(object, known); alarm.known {
		return alarm.result
	}
	return result
}

// terminating returns the health of an object that is being deleted. The message says what the deletion waits for.
func terminating(object fields) Result {
	list, _ := object.at("metadata", "finalizers").([]any)
	var waits []string
	for _, finalizer := range list {
		if name, ok := finalizer.(string); ok {
			waits = append(waits, name)
		}
	}
	if len(waits) == 0 {
		return progressing(appsv1alpha1.ReasonTerminating, "It is being deleted")
	}
	return progressing(appsv1alpha1.ReasonTerminating, "It is being deleted and waits for its finalizers: "+strings.Join(waits, ", "))
}

// application returns the health of an Application. A status of an older generation is ignored: the new one can name
// other components.
func application(object fields) Result {
	if object.hasNoStatus() {
		return noStatus(true)
	}
	if object.number(0, "metadata", "generation") != object.number(0, "status", "observedGeneration") {
		return unknown(appsv1alpha1.ReasonNotObserved, "Masthead has not seen the latest change of the Application yet")
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
		// The Application exists, so it is not Missing itself. A component is missing, and that does not resolve by itself.
		return degraded(appsv1alpha1.ReasonComponentsMissing, message)
	case appsv1alpha1.HealthDegraded:
		return degraded(appsv1alpha1.ReasonComponentsDegraded, message)
	default:
		return unknown(appsv1alpha1.ReasonUnreadable, fmt.Sprintf("The health %q of the Application is unknown to Masthead", h))
	}
}
