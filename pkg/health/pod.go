// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// pod does not use kstatus, which reports a failed Pod as current, and an unschedulable one as failed after 15 seconds,
// which causes no event.
func pod(p fields) (Result, bool) {
	switch phase := corev1.PodPhase(p.text("status", "phase")); phase {
	case corev1.PodSucceeded:
		return healthy(), true
	case corev1.PodFailed:
		return failedPod(p), true
	case corev1.PodPending, corev1.PodRunning:
		if result, stuck := stuckContainer(p); stuck {
			return result, true
		}
		if phase == corev1.PodPending {
			return pendingPod(p), true
		}
		return runningPod(p), true
	case corev1.PodUnknown:
		return unknown(reasonOr(p.text("status", "reason"), appsv1alpha1.ReasonNodeLost),
			messageOr(p.text("status", "message"), "The node of the Pod does not respond")), true
	case "":
		return notSeen(), true
	default:
		return unknown(appsv1alpha1.ReasonUnreadable, fmt.Sprintf("The phase %q of the Pod is unknown to Masthead", phase)), true
	}
}

// failedPod determines why a Pod failed. An evicted Pod gives the reason itself; otherwise one of its containers does.
func failedPod(p fields) Result {
	if reason := p.text("status", "reason"); word(reason) != "" {
		return degraded(reason, messageOr(p.text("status", "message"), "The Pod has failed"))
	}
	for _, c := range containers(p) {
		end := c.part("state", "terminated")
		if code := end.number(0, "exitCode"); code != 0 {
			return degraded(reasonOr(end.text("reason"), appsv1alpha1.ReasonPodFailed),
				fmt.Sprintf("Container %q ended with exit code %d", c.text("name"), code))
		}
	}
	return degraded(appsv1alpha1.ReasonPodFailed, messageOr(p.text("status", "message"), "The Pod has failed"))
}

func pendingPod(p fields) Result {
	if c := p.condition(string(corev1.PodScheduled)); c.isFalse() {
		return progressing(reasonOr(c.reason, appsv1alpha1.ReasonUnschedulable), messageOr(c.message, "The Pod has no node yet"))
	}
	return progressing(appsv1alpha1.ReasonPodPending, "Not all containers of the Pod are started")
}

func runningPod(p fields) Result {
	ready := p.condition(string(corev1.PodReady))
	switch {
	case !ready.isTrue():
		return progressing(reasonOr(ready.reason, appsv1alpha1.ReasonContainersNotReady), messageOr(ready.message, "The Pod is not ready"))
	case endsByItself(p):
		// Like a running Job, it is Progressing.
		return progressing(appsv1alpha1.ReasonPodRunning, "The Pod is running and has not ended")
	default:
		return healthy()
	}
}

func endsByItself(p fields) bool {
	policy := corev1.RestartPolicy(p.text("spec", "restartPolicy"))
	return policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure
}

// stuckContainer is a container whose waiting does not resolve by itself.
//
// The kubelet's own text changes with each attempt: the reason alternates between ErrImagePull and ImagePullBackOff,
// and the message counts the seconds of the back-off. The text here is stable until something changes.
func stuckContainer(p fields) (Result, bool) {
	for _, c := range containers(p) {
		reason := c.text("state", "waiting", "reason")
		name := c.text("name")
		switch {
		case reason == "ErrImagePull" || reason == appsv1alpha1.ReasonImagePullBackOff:
			return degraded(appsv1alpha1.ReasonImagePullBackOff, fmt.Sprintf("Container %q: its image %q cannot be pulled", name, image(p, name))), true
		case reason == "CrashLoopBackOff":
			message := fmt.Sprintf("Container %q is restarted repeatedly", name)
			if end := c.part("lastState", "terminated"); end != nil {
				message += fmt.Sprintf("; it ended with exit code %d (%s)", end.number(0, "exitCode"), reasonOr(end.text("reason"), "no reason"))
			}
			return degraded(reason, message), true
		case isFailure(reason):
			return degraded(reason, messageOr(c.text("state", "waiting", "message"), fmt.Sprintf("Container %q cannot be started", name))), true
		}
	}
	return Result{}, false
}

// isFailure distinguishes errors among waiting reasons from normal ones, such as ContainerCreating. The kubelet and the
// runtimes have no list of them, but a naming habit: CreateContainerConfigError, RunContainerError, ErrImageNeverPull,
// RegistryUnavailable, InvalidImageName.
func isFailure(reason string) bool {
	return strings.HasPrefix(reason, "Err") || strings.HasPrefix(reason, "Invalid") ||
		strings.HasSuffix(reason, "Error") || strings.HasSuffix(reason, "BackOff") || reason == "RegistryUnavailable"
}

// containers returns the states of a Pod's containers, in start order.
func containers(p fields) []fields {
	return append(p.parts("status", "initContainerStatuses"), p.parts("status", "containerStatuses")...)
}

// image returns the image in a container's spec: the status holds what the runtime resolved.
func image(p fields, container string) string {
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range p.parts("spec", list) {
			if c.text("name") == container {
				return c.text("image")
			}
		}
	}
	return ""
}
