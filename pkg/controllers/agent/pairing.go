// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// problem is why a claim cannot be synchronised now, in the words of a condition.
type problem struct {
	reason, message string
}

// targetNamespace returns the namespace of the hub to which the claims of a namespace of a workload cluster go.
//
// Namespaces of the control plane are never a target, whatever the class says and whatever the workload's namespace is
// called: with matchNamespaces, the owner of a workload cluster chooses the name.
func targetNamespace(agent fleetv1alpha1.AgentSpec, namespace string, protected []string) (string, *problem) {
	target := agent.DefaultTargetNamespace
	if agent.MatchNamespaces {
		target = namespace
	}
	switch {
	case target == "" || agent.MatchNamespaces && agent.DefaultTargetNamespace != "":
		return "", &problem{
			reason:  ReasonInvalidClass,
			message: "The EnrollmentClass of this cluster must have either spec.agent.defaultTargetNamespace or spec.agent.matchNamespaces.",
		}
	case isControlPlane(target) || slices.Contains(protected, target):
		return "", &problem{
			reason:  ReasonTargetNamespaceNotAllowed,
			message: fmt.Sprintf("Claims cannot go to the namespace %q of the hub, because it is reserved for the hub itself.", target),
		}
	}
	return target, nil
}

// isControlPlane is whether a namespace of the hub is one that by convention holds a part of the control plane: Kubernetes'
// own, those that end in -system, as Crossplane's, Cluster API's with its providers, and Masthead's do, and cert-manager's.
func isControlPlane(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || strings.HasSuffix(namespace, "-system") || namespace == "cert-manager"
}
