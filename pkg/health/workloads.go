// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// onDelete is the update strategy with which users replace Pods themselves. Pods of an old revision are then expected.
const onDelete = "OnDelete"

// progressDeadlineExceeded is the reason of a Deployment's condition Progressing once its rollout has taken too long.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"

// deployment leaves rollouts to kstatus, which detects stuck ones. A paused Deployment is Suspended, regardless of what
// is ready.
func deployment(d fields) (Result, bool) {
	if d.yes("spec", "paused") {
		return suspended(appsv1alpha1.ReasonPaused, "The Deployment is paused"), true
	}
	if d.at("status", "observedGeneration") == nil {
		return notSeen(), true
	}
	failure, failed := replicaFailure(d)
	if c := d.condition("Progressing"); c.reason == progressDeadlineExceeded {
		if failed {
			c.message = failure.Message
		}
		return degraded(c.reason, messageOr(c.message, "The rollout makes no progress")), true
	}
	return failure, failed
}

// replicaSet leaves the counting to kstatus.
func replicaSet(rs fields) (Result, bool) {
	if rs.at("status", "observedGeneration") == nil {
		return notSeen(), true
	}
	return replicaFailure(rs)
}

// statefulSet leaves rollouts to kstatus, which reports OnDelete as current without further checks.
func statefulSet(s fields) (Result, bool) {
	if s.at("status", "observedGeneration") == nil {
		return notSeen(), true
	}
	if s.text("spec", "updateStrategy", "type") != onDelete {
		return Result{}, false
	}
	return ready(s.number(0, "status", "readyReplicas"), s.number(1, "spec", "replicas")), true
}

// daemonSet leaves rollouts to kstatus, which waits for an OnDelete DaemonSet's owner to delete Pods.
func daemonSet(d fields) (Result, bool) {
	if d.at("status", "observedGeneration") == nil {
		return notSeen(), true
	}
	if d.text("spec", "updateStrategy", "type") != onDelete {
		return Result{}, false
	}
	return ready(d.number(0, "status", "numberReady"), d.number(0, "status", "desiredNumberScheduled")), true
}

// replicationController is not known to kstatus.
func replicationController(rc fields) (Result, bool) {
	if rc.at("status", "observedGeneration") == nil {
		return notSeen(), true
	}
	if result, failed := replicaFailure(rc); failed {
		return result, true
	}
	return ready(rc.number(0, "status", "readyReplicas"), rc.number(1, "spec", "replicas")), true
}

// notSeen is for kinds whose controllers always report the observed generation.
func notSeen() Result {
	return progressing(appsv1alpha1.ReasonNotObserved, "Its controller has not seen it yet")
}

// ready compares ready with desired replicas.
func ready(have, want int64) Result {
	if have < want {
		return progressing(appsv1alpha1.ReasonFewerReady, fmt.Sprintf("Ready: %d/%d", have, want))
	}
	return healthy()
}

// replicaFailure means that Pods cannot be created, for example because of a quota. It is more specific than too few
// replicas. It is not final: the controller retries.
func replicaFailure(o fields) (Result, bool) {
	c := o.condition("ReplicaFailure")
	if !c.isTrue() {
		return Result{}, false
	}
	return progressing(reasonOr(c.reason, appsv1alpha1.ReasonReplicaFailure), messageOr(c.message, "Pods cannot be created")), true
}
