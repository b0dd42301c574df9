// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// assess judges one kind. It returns false where kstatus gives the right answer.
type assess func(fields) (Result, bool)

// builtins are the kinds with checks beyond the generic ones.
func builtins() map[schema.GroupKind]assess {
	return map[schema.GroupKind]assess{
		{Kind: "Pod"}:                                                     pod,
		{Kind: "Service"}:                                                 service,
		{Kind: "PersistentVolumeClaim"}:                                   claim,
		{Kind: "ReplicationController"}:                                   replicationController,
		{Group: "apps", Kind: "Deployment"}:                               deployment,
		{Group: "apps", Kind: "StatefulSet"}:                              statefulSet,
		{Group: "apps", Kind: "DaemonSet"}:                                daemonSet,
		{Group: "apps", Kind: "ReplicaSet"}:                               replicaSet,
		{Group: "batch", Kind: "Job"}:                                     job,
		{Group: "batch", Kind: "CronJob"}:                                 cronJob,
		{Group: "networking.k8s.io", Kind: "Ingress"}:                     ingress,
		{Group: "policy", Kind: "PodDisruptionBudget"}:                    disruptionBudget,
		{Group: "autoscaling", Kind: podAutoscalerKind}:                   podAutoscaler,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: customResourceDefinition,
	}
}

// bareKinds are the kinds whose objects are healthy if they exist: they have no status, or one that does not concern
// health. Their metadata suffices, so no Secret has to be read.
func bareKinds() sets.Set[schema.GroupKind] {
	return sets.New(
		schema.GroupKind{Kind: "ConfigMap"},
		schema.GroupKind{Kind: "Secret"},
		schema.GroupKind{Kind: "ServiceAccount"},
		schema.GroupKind{Kind: "Endpoints"},
		schema.GroupKind{Kind: "Event"},
		schema.GroupKind{Kind: "LimitRange"},
		schema.GroupKind{Kind: "PodTemplate"},
		schema.GroupKind{Kind: "ResourceQuota"},
		schema.GroupKind{Group: "apps", Kind: "ControllerRevision"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
		schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"},
		schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"},
		schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"},
		schema.GroupKind{Group: "events.k8s.io", Kind: "Event"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIDriver"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"},
		schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
		schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"},
		schema.GroupKind{Group: "resource.k8s.io", Kind: "DeviceClass"},
		schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"},
	)
}

func applicationKind() schema.GroupKind {
	return schema.GroupKind{Group: appsv1alpha1.GroupVersion.Group, Kind: "Application"}
}
