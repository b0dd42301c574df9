// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// kstatus calls kstatus. An error means that the status is malformed.
func kstatus(object fields) Result {
	computed, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		return unknown(appsv1alpha1.ReasonUnreadable, "Its status cannot be read: "+err.Error())
	}
	reason := ""
	if len(computed.Conditions) > 0 {
		reason = computed.Conditions[0].Reason
	}
	switch computed.Status {
	case status.CurrentStatus:
		// kstatus puts numbers into the message, which change while the object is healthy.
		return healthy()
	case status.InProgressStatus:
		return progressing(reasonOr(reason, appsv1alpha1.ReasonNotReady), computed.Message)
	case status.FailedStatus:
		return degraded(reasonOr(reason, appsv1alpha1.ReasonStalled), computed.Message)
	case status.TerminatingStatus:
		return progressing(appsv1alpha1.ReasonTerminating, computed.Message)
	case status.NotFoundStatus, status.UnknownStatus:
		fallthrough
	default:
		return unknown(appsv1alpha1.ReasonUnreadable, computed.Message)
	}
}
