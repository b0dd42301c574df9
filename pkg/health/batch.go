// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// job does not use kstatus, which reports running and suspended Jobs as current.
func job(j fields) (Result, bool) {
	// FailureTarget says that the Job has failed and its Pods are being removed.
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobFailureTarget} {
		if c := j.condition(string(kind)); c.isTrue() {
			return degraded(reasonOr(c.reason, appsv1alpha1.ReasonJobFailed), messageOr(c.message, "The Job has failed")), true
		}
	}
	switch {
	case j.condition(string(batchv1.JobComplete)).isTrue():
		return healthy(), true
	case j.yes("spec", "suspend"):
		return suspended(appsv1alpha1.ReasonSuspended, "The Job is suspended"), true
	}
	// The number of succeeded Pods is omitted: the message would be rewritten for each of a thousand Pods.
	if failed := j.number(0, "status", "failed"); failed > 0 {
		return progressing(appsv1alpha1.ReasonJobRunning, fmt.Sprintf("The Job has not ended; failed Pods: %d", failed)), true
	}
	return progressing(appsv1alpha1.ReasonJobRunning, "The Job has not ended"), true
}

// cronJob judges the last run by its times; Kubernetes records nothing else about it.
func cronJob(c fields) (Result, bool) {
	last, active := c.text("status", "lastScheduleTime"), len(c.parts("status", "active")) > 0
	switch {
	case c.yes("spec", "suspend"):
		return suspended(appsv1alpha1.ReasonSuspended, "The CronJob is suspended"), true
	case last == "" || c.text("status", "lastSuccessfulTime") >= last:
		return healthy(), true
	case active:
		return progressing(appsv1alpha1.ReasonJobRunning, "The last run has not ended"), true
	}
	return degraded(appsv1alpha1.ReasonJobFailed, "The last run has not succeeded"), true
}
