// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// OfHub turns what the hub answered to a write into what a user should know, or returns nil for an error that is
// better retried: the hub could not be reached, was busy, or the object had changed.
func OfHub(err error, verb, resource, target string) *condition.Problem {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return &condition.Problem{
			Reason:  reason.ReasonTargetNamespaceMissing,
			Message: fmt.Sprintf("The namespace %q of the hub is being deleted.", target),
		}
	case apierrors.IsForbidden(err) && reason.MissingRight.MatchString(err.Error()):
		return MissingRight(err, verb, resource, target)
	case reason.IsMissingNamespace(err):
		return &condition.Problem{
			Reason:  reason.ReasonTargetNamespaceMissing,
			Message: fmt.Sprintf("The namespace %q does not exist in the hub.", target),
		}
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), meta.IsNoMatchError(err):
		return &condition.Problem{
			Reason:  reason.ReasonKindNotServed,
			Message: fmt.Sprintf("The hub does not serve %s now.", resource),
		}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &condition.Problem{
			Reason:  reason.ReasonRejected,
			Message: fmt.Sprintf("The hub rejected the claim: %v", err),
		}
	}
	return nil
}

// HubUnavailable is what a user should know of an answer by which the hub could not do what it was asked for, as when a
// webhook of the hub is down: nil for every other answer, and if there was none, which concerns the manager rather than
// a claim. It says nothing about the claim, so that its condition is Unknown.
func HubUnavailable(err error) *condition.Problem {
	if !apierrors.IsInternalError(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
		return nil
	}
	return &condition.Problem{
		Reason:  reason.ReasonHubUnavailable,
		Message: "The hub could not take the claim: " + multicluster.BoundedText(err.Error()),
		Unknown: true,
	}
}

// refusedRight is how the hub's authorizer says what somebody may not do.
var refusedRight = regexp.MustCompile( //nolint:gochecknoglobals // A constant.
	`User "([^"]*)" cannot ([a-z:-]+) resource "([^"]*)" in API group "([^"]*)"`)

// MissingRight says who lacks which right in the hub. If that is not the manager, it is in the words of the hub: they
// name the user, whose name the manager need not know, and the one right of an apply that is missing.
func MissingRight(err error, verb, resource, target string) *condition.Problem {
	var refused hubaccess.RefusalError
	if !errors.As(err, &refused) {
		return &condition.Problem{
			Reason:  reason.ReasonForbidden,
			Message: fmt.Sprintf("Masthead lacks the right to %s %s in the namespace %q of the hub.", verb, resource, target),
		}
	}
	said := refusedRight.FindStringSubmatch(err.Error())
	if said == nil {
		said = []string{"", "", verb, resource, ""}
	}
	// Newer API servers speak of the verbs of constrained impersonation first.
	if strings.HasPrefix(said[2], "impersonate") {
		return &condition.Problem{
			Reason:  reason.ReasonImpersonationForbidden,
			Message: fmt.Sprintf("Masthead lacks the right to impersonate %s of the hub.", refused.Key),
		}
	}
	what := schema.GroupResource{Group: said[4], Resource: said[3]}.String()
	if said[0] == "" {
		what = resource
	}
	return &condition.Problem{
		Reason: reason.ReasonForbidden,
		Message: fmt.Sprintf("The user %q of the hub, which is %s, lacks the right to %s %s in the namespace %q of the hub.",
			said[1], refused.Key, said[2], what, target),
	}
}

// IsUnauthorized is whether the hub does not know the user of an identity that is not the manager's. Of several errors,
// one that says so is enough. What a workload cluster answers says nothing about that user.
func IsUnauthorized(err error) bool {
	return slices.ContainsFunc(Each(err), func(err error) bool {
		var refused hubaccess.RefusalError
		return errors.As(err, &refused) && apierrors.IsUnauthorized(refused.Answer)
	})
}

// IsConflict is whether an error is a conflict, which passes by itself. Several errors are if all of them are.
func IsConflict(err error) bool {
	return err != nil && !slices.ContainsFunc(Each(err), func(err error) bool { return !apierrors.IsConflict(err) })
}

// Each are the errors of which an error consists, or it alone. The functions of apierrors look at the first only that
// has an answer.
func Each(err error) []error {
	var several interface{ Unwrap() []error }
	if !errors.As(err, &several) {
		return []error{err}
	}
	var out []error
	for _, err := range several.Unwrap() {
		if err != nil {
			out = append(out, Each(err)...)
		}
	}
	return out
}

// unansweredError is an error of a workload cluster that did not answer. To ask it again at once costs another timeout.
type unansweredError struct{ error }

// Unwrap is the error itself.
func (e unansweredError) Unwrap() error { return e.error }

// MarkUnanswered marks the error of a request to a workload cluster if it is no answer.
func MarkUnanswered(err error) error {
	var answer apierrors.APIStatus
	if err == nil || errors.As(err, &answer) {
		return err
	}
	return unansweredError{err}
}

// IsUnanswered is whether a workload cluster did not answer. Of several errors, one that says so is enough.
func IsUnanswered(err error) bool {
	var e unansweredError
	return errors.As(err, &e)
}

// IsMissingObject recognises the answer that there is no such object, as opposed to no such kind, for which a server
// has the same code.
func IsMissingObject(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
