// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/references"
)

// maxReason is the maximum number of characters repeated of the reason for which an API server fails.
const maxReason = 64

// outcome is the result of resolving the references of an object.
type outcome struct {
	failed  *references.Error
	missing []*references.Error

	// watched says that everything that the object depends on is watched, and unwatched, for users, why changes of sources
	// are not noticed at once; empty if they are.
	watched   bool
	unwatched string

	// soon says that something may be served in a moment.
	soon bool
}

// retried returns the failure of a request to write the values, which is retried with back-off.
func (o outcome) retried() error {
	if o.failed != nil && o.failed.Index < 0 && o.failed.Reason == commonv1alpha1.ReasonUnavailable {
		return o.failed
	}
	return nil
}

// newCondition is the condition that reports an outcome.
func newCondition(generation int64, o outcome) metav1.Condition {
	c := metav1.Condition{
		Type: commonv1alpha1.ConditionReferencesResolved, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: commonv1alpha1.ReasonResolved, Message: "All references are resolved",
	}
	if len(o.missing) > 0 {
		indices := make([]string, 0, len(o.missing))
		for _, m := range o.missing {
			indices = append(indices, fmt.Sprintf("spec.references[%d]", m.Index))
		}
		c.Message = "All required references are resolved; optional references whose source is missing: " + strings.Join(indices, ", ")
	}
	if o.unwatched != "" {
		c.Message += "; changes of their sources are noticed within two minutes only, since " + o.unwatched
	}
	if o.failed == nil {
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, o.failed.Reason
	switch o.failed.Reason {
	case commonv1alpha1.ReasonUnavailable:
		c.Status, c.Message = metav1.ConditionUnknown, unanswered(o.failed)
	case commonv1alpha1.ReasonCycle:
		c.Message = capital(o.failed.Detail())
	default:
		c.Message = capital(o.failed.Error())
	}
	return c
}

// unanswered describes a failed request by nothing that differs from one request to the next, as its error does.
func unanswered(failed *references.Error) string {
	if failed.Index >= 0 {
		return fmt.Sprintf("The API server did not answer about spec.references[%d]", failed.Index)
	}
	if reason := apierrors.ReasonForError(failed); reason != metav1.StatusReasonUnknown {
		return "The API server did not apply the resolved values: " + condition.Text(string(reason), maxReason)
	}
	return "The API server did not apply the resolved values"
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// withCondition returns the conditions of an object with ours replaced, and whether they differ.
func withCondition(obj *unstructured.Unstructured, c metav1.Condition, now metav1.Time) ([]any, bool) {
	c.LastTransitionTime = now
	have, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	list, _ := have.([]any)
	out := make([]any, 0, len(list)+1)
	for _, entry := range list {
		before, ok := entry.(map[string]any)
		if !ok || before["type"] != c.Type {
			out = append(out, entry)
			continue
		}
		if before["status"] == string(c.Status) {
			if before["reason"] == c.Reason && before["message"] == c.Message && before["observedGeneration"] == c.ObservedGeneration {
				return nil, false
			}
			if since, ok := before["lastTransitionTime"].(string); ok {
				_ = c.LastTransitionTime.UnmarshalQueryParameter(since)
			}
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return nil, false
	}
	return append(out, content), true
}
