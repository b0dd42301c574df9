// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	corev1 "k8s.io/api/core/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// announcer writes events on enrolled objects.
type announcer struct {
	recorder EventRecorder // nil if there is none
}

// changed writes an event for a relevant change, unless the first one of a process only repeats the reason that the hub
// had recorded: a restart is no news of a cluster.
func (a announcer) changed(old, now Cluster, recorded *string) {
	if (old.State == now.State && old.Reason == now.Reason) || now.State == StateConnecting {
		return
	}
	if old.State == "" && now.State == StatePending && now.Reason == fleetv1alpha1.ReasonConnecting {
		return
	}
	repeated := now.Reason == *recorded
	if *recorded = ""; repeated {
		return
	}
	eventType := corev1.EventTypeNormal
	if now.State == StateDegraded || now.State == StateBackoff {
		eventType = corev1.EventTypeWarning
	}
	a.write(now.Enrolment.Object, eventType, now.Reason, now.Message)
}

// kept reports that changed credentials do not work and the old connection is kept.
func (a announcer) kept(o ObjectReference, why *condition.Error) {
	a.write(o, corev1.EventTypeWarning, why.Reason,
		"The changed kubeconfig is not used, and the existing connection is kept: "+why.Message)
}

func (a announcer) write(o ObjectReference, eventType, reason, message string) {
	if a.recorder == nil {
		return
	}
	apiVersion, kind := o.ToAPIVersionAndKind()
	ref := &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
	a.recorder.Eventf(ref, nil, eventType, reason, "Connect", "%s", message)
}
