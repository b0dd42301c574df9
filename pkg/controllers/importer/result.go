// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// result is what a phase adds to the status, and when the import is to be reconciled again.
type result struct {
	conditions []metav1.Condition
	// observed and kubeconfig are nil if the phase does not know them.
	observed   *fleetv1alpha1.ObservedCluster
	kubeconfig *fleetv1alpha1.ImportKubeconfigStatus
	references []fleetv1alpha1.ImportReference
	lossy      []reflection.Lossy
	// reflected means that the cluster is being reflected, and complete that all of its reflection is written.
	reflected, complete bool
	// removed are the kinds of which the import has no objects left, and emptied means that it has none at all: it is
	// deleted, or may no longer use its provider configuration.
	removed []schema.GroupKind
	emptied bool
	// waits means that the import found no place, and is woken when it has one.
	waits bool
	// gone means that the import itself is gone.
	gone bool
	// again is the requeue delay; 0 for the regular one.
	again time.Duration
}

// run executes the phases until one ends with an error, and merges their results. A problem is reported.
func run(phases ...func() (result, error)) (result, error) {
	var all result
	for _, phase := range phases {
		found, err := phase()
		all.add(found)
		problems, err := splitProblems(err)
		for _, problem := range slices.Backward(problems) { // The first one of a type counts.
			all.report(problem)
		}
		switch {
		case err == nil && len(problems) > 0:
			return all, nil
		case err == nil:
			continue
		case isRefused(err):
			all.fail(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused, "%s", err)
		case apierrors.IsForbidden(err):
			all.fail(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonRightsMissing, "%s", err)
		}
		return all, err
	}
	return all, nil
}

// splitProblems returns the problems of an error that several may be joined in, and the rest of it.
func splitProblems(err error) (problems []*condition.Error, rest error) {
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		for _, each := range joined.Unwrap() {
			found, other := splitProblems(each)
			problems, rest = append(problems, found...), errors.Join(rest, other)
		}
		if len(problems) == 0 {
			return nil, err // With what wraps it.
		}
		return problems, rest
	}
	if problem, ok := errors.AsType[*condition.Error](err); ok {
		return []*condition.Error{problem}, nil
	}
	return nil, err
}

// add adds the result of a later phase.
func (r *result) add(later result) {
	for _, c := range later.conditions {
		r.set(c)
	}
	for _, ref := range later.references {
		if !slices.Contains(r.references, ref) {
			r.references = append(r.references, ref)
		}
	}
	r.observed, r.kubeconfig = cmp.Or(later.observed, r.observed), cmp.Or(later.kubeconfig, r.kubeconfig)
	r.lossy, r.removed = append(r.lossy, later.lossy...), append(r.removed, later.removed...)
	r.reflected, r.complete = r.reflected || later.reflected, r.complete || later.complete
	r.emptied, r.waits, r.gone = r.emptied || later.emptied, r.waits || later.waits, r.gone || later.gone
	r.requeue(later.again)
}

// requeue requeues the import before the regular time.
func (r *result) requeue(after time.Duration) { r.again = condition.MinNonZero(r.again, after) }

// requeueAfter is the requeue delay of the import.
func (r *result) requeueAfter() time.Duration {
	return max(cmp.Or(r.again, workload.Resync), time.Second)
}

// set sets a condition, replacing an earlier one of the same type.
func (r *result) set(c metav1.Condition) {
	c.Message = boundedText(c.Message)
	r.conditions = append(slices.DeleteFunc(r.conditions, func(other metav1.Condition) bool { return other.Type == c.Type }), c)
}

// succeed sets a condition to True.
func (r *result) succeed(conditionType, reason, message string) {
	r.set(metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

// fail sets a condition to False.
func (r *result) fail(conditionType, reason, format string, args ...any) {
	r.set(metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// refer adds an object to the status.
func (r *result) refer(o client.Object) {
	apiVersion, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	r.references = append(r.references, fleetv1alpha1.ImportReference{
		APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(),
	})
}

// report sets the condition of a problem, and requeues the import when the problem says. AlreadyManaged is the one
// whose problem is that it is True.
func (r *result) report(problem *condition.Error) {
	status := metav1.ConditionFalse
	if problem.Type == fleetv1alpha1.ConditionAlreadyManaged {
		status = metav1.ConditionTrue
	}
	r.set(metav1.Condition{Type: problem.Type, Status: status, Reason: problem.Reason, Message: problem.Message})
	r.requeue(problem.RetryAfter)
}

// stop is a problem that ends the phases: the following ones cannot be done.
func stop(conditionType, reason, format string, args ...any) *condition.Error {
	return &condition.Error{Type: conditionType, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
