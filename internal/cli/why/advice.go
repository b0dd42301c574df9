// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// advice returns what to do about a reason, in one sentence; docs has more. It is empty where the message says it, and
// for foreign reasons.
//
//nolint:gocyclo,funlen // A table.
func advice(why string) string {
	switch why {
	case fleetv1alpha1.ReasonDialError:
		return "Check the cluster's API server, the network between the hub and it, and the address in the kubeconfig."
	case fleetv1alpha1.ReasonTLSError:
		return "Correct the certificate authority, the server name or the certificate."
	case fleetv1alpha1.ReasonUnauthorized:
		return "Renew the credentials in the kubeconfig's Secret."
	case fleetv1alpha1.ReasonBadKubeconfig:
		return "Correct the kubeconfig in the Secret."
	case fleetv1alpha1.ReasonEndpointDenied:
		return "Name another address, or have the manager's --denied-endpoint-cidrs or --allow-loopback-endpoints changed."
	case fleetv1alpha1.ReasonAnswerRefused:
		return "If the cluster is to send that much, raise the manager's --max-answer-mib, --max-list-mib or --max-decoded-mib."
	case fleetv1alpha1.ReasonMemoryShareExceeded:
		return "Raise the manager's --memory-budget-mib, or have fewer objects in the cluster."
	case fleetv1alpha1.ReasonNamespaceNotAllowed:
		return "Add the namespace to the class's spec.allowedNamespaces, or name another class."
	case fleetv1alpha1.ReasonClassFull:
		return "Raise the class's spec.maxClusters, un-enrol another cluster, or name another class."
	case fleetv1alpha1.ReasonPaused:
		return "Unpause it."
	case fleetv1alpha1.ReasonDuplicateCluster:
		return "Un-enrol one of the two, or give them different identifiers."
	case fleetv1alpha1.ReasonClusterIdentityChanged:
		return "If that is intended, remove the label masthead.dev/enroll and add it again."
	case ReasonNotEnrolled:
		return "Enrol it: kubectl masthead enroll."
	case ReasonSwitchedOff:
		return "Change the class, or name another one."
	case fleetv1alpha1.ReasonConflict:
		return "Choose another name, or have the holder deleted."
	case fleetv1alpha1.ReasonHubForbidden:
		return "Grant the right that the message names, in the hub."
	case fleetv1alpha1.ReasonWorkloadForbidden, fleetv1alpha1.ReasonDefinitionForbidden:
		return "Apply config/workload in the workload cluster."
	case fleetv1alpha1.ReasonClaimsForbidden:
		return "Grant the API group in the workload cluster (config/samples/workload/claims-rights.yaml)."
	case fleetv1alpha1.ReasonDefinitionForeign:
		return "Remove the definition from the workload cluster, or label it masthead.dev/managed-by=masthead to hand it over."
	case fleetv1alpha1.ReasonRejected:
		return "Correct the claim: the hub refuses it as it is."
	case fleetv1alpha1.ReasonHubObjectDeleted:
		return "Restore the object in the hub, request a new one with the annotation agent.masthead.dev/recreate, or delete the claim."
	case fleetv1alpha1.ReasonReconcilePaused:
		return "Remove the annotation crossplane.io/paused from the claim."
	case fleetv1alpha1.ReasonSyncFailing:
		return "Check the manager's log, which contains the error."
	case fleetv1alpha1.ReasonTargetNamespaceNotAllowed:
		return "Name another namespace, or have it added to the class's spec.agent.allowedTargetNamespaces."
	case fleetv1alpha1.ReasonCredentialsMissing:
		return "Create the Secret with the credentials."
	case fleetv1alpha1.ReasonSecretConflict:
		return "Delete the conflicting Secret, or request another name."
	case commonv1alpha1.ReasonFieldNotFound:
		return "Wait until the field has a value, or correct the path."
	case fleetv1alpha1.ReasonCanaryFailed:
		return "Apply config/policies in the hub."
	case fleetv1alpha1.ReasonRightsMissing:
		return "Apply config/imports/base in the hub with the component of the cloud, or set imports.clouds of the chart."
	case appsv1alpha1.ReasonKindForbidden:
		return "Grant the kind in the workload cluster (config/samples/workload/components-rights.yaml)."
	case appsv1alpha1.ReasonLabelsDoNotMatch:
		return "Label the object as the Application's selector requires."
	}
	return ""
}
