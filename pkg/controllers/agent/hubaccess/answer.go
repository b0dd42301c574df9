// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubaccess

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// RefusalError is an answer of the hub to an identity other than the manager.
type RefusalError struct {
	Answer error
	// Identity describes the identity to users.
	Identity string
}

// Error returns the answer's text.
func (r RefusalError) Error() string { return r.Answer.Error() }

// Unwrap returns the answer.
func (r RefusalError) Unwrap() error { return r.Answer }

// HubProblem turns the hub's answer to a write into a problem to report, or returns nil for an error that is better
// retried: the hub could not be reached, was busy, or the object had changed.
func HubProblem(err error, verb, resource, target string) *condition.Error {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return &condition.Error{
			Reason:  fleetv1alpha1.ReasonTargetNamespaceMissing,
			Message: fmt.Sprintf("The namespace %q of the hub is being deleted.", target),
		}
	case apierror.IsMissingRight(err):
		return MissingRight(err, verb, resource, target)
	case apierror.IsMissingNamespace(err):
		return &condition.Error{
			Reason:  fleetv1alpha1.ReasonTargetNamespaceMissing,
			Message: fmt.Sprintf("The namespace %q does not exist in the hub.", target),
		}
	case apierror.IsNotServed(err):
		return &condition.Error{
			Reason:  fleetv1alpha1.ReasonKindNotServed,
			Message: fmt.Sprintf("The hub does not serve %s now.", resource),
		}
	}
	refused := apply.Refusal(err)
	if apierrors.IsForbidden(err) {
		refused = err
	}
	if refused == nil {
		return nil
	}
	return &condition.Error{Reason: fleetv1alpha1.ReasonRejected, Message: fmt.Sprintf("The hub rejected the claim: %v", refused)}
}

// WorkloadProblem turns a workload cluster's answer into a problem to report, or returns nil if a retry may change the
// answer.
func WorkloadProblem(err error, what, rejected string) *condition.Error {
	switch {
	case apierror.IsMissingRight(err):
		return &condition.Error{Reason: fleetv1alpha1.ReasonWorkloadForbidden, Message: fmt.Sprintf("Masthead lacks the right to %s in this cluster.", what)}
	case apierrors.IsForbidden(err), apierror.IsRejected(err), apierror.IsMissingNamespace(err), apierrors.IsMethodNotSupported(err):
		return &condition.Error{Reason: rejected, Message: fmt.Sprintf("This cluster does not let Masthead %s: %s", what, multicluster.BoundedText(err.Error()))}
	}
	return nil
}

// HubError is HubProblem as an error to retry slowly, or else the error itself.
func HubError(err error, verb, resource, target string) error {
	if p := HubProblem(err, verb, resource, target); p != nil {
		return p.RetriedAfter(condition.SlowRetry())
	}
	return err
}

// WorkloadError is WorkloadProblem as an error to retry slowly, or else the error itself.
func WorkloadError(err error, what, rejected string) error {
	if p := WorkloadProblem(err, what, rejected); p != nil {
		return p.RetriedAfter(condition.SlowRetry())
	}
	return err
}

// unavailableError is retried with back-off, and reported meanwhile: condition.Join and Result would not retry it.
type unavailableError struct {
	error
	problem *condition.Error
}

// Unwrap returns the error itself, and what is reported.
func (e unavailableError) Unwrap() []error { return []error{e.error, e.problem} }

// HubUnavailable adds what to report to an error if the hub answered that it could not process a request, as when one
// of its webhooks is down. It returns any other answer as it is, and what is none, which concerns the manager rather
// than a claim. Such an answer says nothing about the claim, whose condition is Unknown. It names webhooks, addresses
// and ports, and changes with each attempt: it is for the log.
func HubUnavailable(err error) error {
	if !apierror.IsUnavailable(err) {
		return err
	}
	return unavailableError{error: err, problem: &condition.Error{
		Reason:  fleetv1alpha1.ReasonHubUnavailable,
		Message: "The hub could not process the claim; its answer is in the log of Masthead in the hub.",
		Unknown: true,
	}}
}

// refusedRight matches the refusal of the hub's authorizer.
var refusedRight = regexp.MustCompile( //nolint:gochecknoglobals // A constant.
	`User "([^"]*)" cannot ([a-z:-]+) resource "([^"]*)" in API group "([^"]*)"`)

// MissingRight reports who lacks which right in the hub. For an identity other than the manager it uses the hub's
// words: they name the user, which the manager need not know, and the one missing right of an apply.
func MissingRight(err error, verb, resource, target string) *condition.Error {
	var refused RefusalError
	if !errors.As(err, &refused) {
		return &condition.Error{
			Reason:  fleetv1alpha1.ReasonHubForbidden,
			Message: fmt.Sprintf("Masthead lacks the right to %s %s in the namespace %q of the hub.", verb, resource, target),
		}
	}
	said := refusedRight.FindStringSubmatch(err.Error())
	if said == nil {
		said = []string{"", "", verb, resource, ""}
	}
	// Newer API servers mention the verbs of constrained impersonation first.
	if strings.HasPrefix(said[2], "impersonate") {
		return &condition.Error{
			Reason:  fleetv1alpha1.ReasonImpersonationForbidden,
			Message: fmt.Sprintf("Masthead lacks the right to impersonate %s of the hub.", refused.Identity),
		}
	}
	what := schema.GroupResource{Group: said[4], Resource: said[3]}.String()
	if said[0] == "" {
		what = resource
	}
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonHubForbidden,
		Message: fmt.Sprintf("The user %q of the hub, which is %s, lacks the right to %s %s in the namespace %q of the hub.",
			said[1], refused.Identity, said[2], what, target),
	}
}

// IsUnauthorized reports whether the hub does not know the user of an identity other than the manager. Of several
// errors, one is enough. Answers of a workload cluster do not count.
func IsUnauthorized(err error) bool {
	return slices.ContainsFunc(apierror.Each(err), func(err error) bool {
		var refused RefusalError
		return errors.As(err, &refused) && apierrors.IsUnauthorized(refused.Answer)
	})
}

// IsConflict reports whether an error is a conflict, which resolves by itself. Of several errors, all must be.
func IsConflict(err error) bool {
	return err != nil && !slices.ContainsFunc(apierror.Each(err), func(err error) bool { return !apierrors.IsConflict(err) })
}

// unansweredError is an error of a workload cluster that did not answer. Retrying at once costs another timeout.
type unansweredError struct{ error }

// Unwrap returns the error itself.
func (e unansweredError) Unwrap() error { return e.error }

// MarkUnanswered marks the error of a request to a workload cluster if there was no answer.
func MarkUnanswered(err error) error {
	if err == nil || apierror.IsAnswer(err) {
		return err
	}
	return unansweredError{err}
}

// IsUnanswered reports whether a workload cluster did not answer. Of several errors, one is enough.
func IsUnanswered(err error) bool {
	var e unansweredError
	return errors.As(err, &e)
}
