// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons for the health of a component, besides Terminating. Others come from the object (its condition, container
// or status) or from kstatus.
const (
	// ReasonNoStatus: the kind has a status and the object has none, so no controller has observed it yet.
	ReasonNoStatus = "NoStatus"

	// ReasonNotObserved: the controller of the kind has not seen the object yet, or not its latest change.
	ReasonNotObserved = "NotObserved"

	// ReasonUnreadable: the status does not have the expected shape.
	ReasonUnreadable = "Unreadable"

	// ReasonNotUnderstood: the object has a status, but nothing in it is understood.
	ReasonNotUnderstood = "NotUnderstood"

	// ReasonFailed: the status reports a failure without a reason.
	ReasonFailed = "Failed"

	// ReasonPaused: a Deployment is paused.
	ReasonPaused = "Paused"

	// ReasonSuspended: a Job or CronJob is suspended.
	ReasonSuspended = "Suspended"

	// ReasonScalingDisabled: a HorizontalPodAutoscaler is inactive, because its target has been scaled to zero.
	ReasonScalingDisabled = "ScalingDisabled"

	// ReasonFewerReady: fewer Pods are ready than desired.
	ReasonFewerReady = "FewerReady"

	// ReasonReplicaFailure: Pods cannot be created or deleted, and the condition gives no reason.
	ReasonReplicaFailure = "ReplicaFailure"

	// ReasonPodPending: the containers of a Pod have not all been started.
	ReasonPodPending = "PodPending"

	// ReasonPodRunning: a Pod that runs to completion is running.
	ReasonPodRunning = "PodRunning"

	// ReasonContainersNotReady: the containers of a Pod run and are not all ready.
	ReasonContainersNotReady = "ContainersNotReady"

	// ReasonPodFailed: a Pod has failed without a reason.
	ReasonPodFailed = "PodFailed"

	// ReasonNodeLost: the node of a Pod does not answer.
	ReasonNodeLost = "NodeLost"

	// ReasonUnschedulable: no node can run a Pod.
	ReasonUnschedulable = "Unschedulable"

	// ReasonImagePullBackOff: the image of a container cannot be pulled.
	ReasonImagePullBackOff = "ImagePullBackOff"

	// ReasonJobRunning: a Job has not finished.
	ReasonJobRunning = "JobRunning"

	// ReasonJobFailed: a Job has failed without a reason.
	ReasonJobFailed = "JobFailed"

	// ReasonLoadBalancerPending: no load balancer has given a Service or an Ingress an address.
	ReasonLoadBalancerPending = "LoadBalancerPending"

	// ReasonClaimPending: a PersistentVolumeClaim has no volume yet.
	ReasonClaimPending = "ClaimPending"

	// ReasonClaimLost: the volume of a PersistentVolumeClaim is gone.
	ReasonClaimLost = "ClaimLost"

	// ReasonScalingFailed: a HorizontalPodAutoscaler cannot scale and gives no reason.
	ReasonScalingFailed = "ScalingFailed"

	// ReasonSyncFailed: a PodDisruptionBudget cannot be computed.
	ReasonSyncFailed = "SyncFailed"

	// ReasonNotReady: a condition says that the object is not ready, and gives no reason.
	ReasonNotReady = "NotReady"

	// ReasonStalled: a condition says that the object makes no progress, and gives no reason.
	ReasonStalled = "Stalled"
)

// Reasons for the health of a component that HealthRules set.
const (
	// ReasonRuleDegraded, ReasonRuleSuspended and ReasonRuleProgressing: that expression of the rule is true.
	ReasonRuleDegraded    = "RuleDegraded"
	ReasonRuleSuspended   = "RuleSuspended"
	ReasonRuleProgressing = "RuleProgressing"

	// ReasonRuleNotHealthy: the rule defines when an object is healthy, and it is not.
	ReasonRuleNotHealthy = "RuleNotHealthy"

	// ReasonRuleFailed: an expression of the rule failed or cost too much, or the rule cannot be compiled.
	ReasonRuleFailed = "RuleFailed"
)
