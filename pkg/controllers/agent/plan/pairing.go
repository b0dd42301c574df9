// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// Pairing is what decides about the target of the claims in one namespace of a workload cluster.
type Pairing struct {
	Class string
	Agent fleetv1alpha1.AgentSpec

	// Namespace is the claims' own, and annotations are those that its owner has put on it.
	Namespace   string
	Annotations map[string]string

	// Protected are namespaces of the hub that are never a target.
	Protected []string

	// Allowed is whether the class's allowedTargetNamespaces, which are there, have a namespace of the hub.
	Allowed func(target string) bool
}

// Target returns the namespace of the hub to which the claims go.
//
// An annotation and, with matchNamespaces, the name of a namespace are chosen by the owner of a workload cluster. So
// both lead only to where the class allows, or if it does not say, to where the identity that is used may write; the
// manager's own identity may write everywhere, and is no limit. Namespaces of the control plane are never a target,
// whoever names them.
func (p *Pairing) Target() (string, *condition.Problem) {
	classTarget := p.Agent.DefaultTargetNamespace
	if p.Agent.MatchNamespaces {
		classTarget = p.Namespace
	}
	if classTarget == "" || p.Agent.MatchNamespaces && p.Agent.DefaultTargetNamespace != "" {
		return "", &condition.Problem{
			Reason:  reason.ReasonInvalidClass,
			Message: "The EnrollmentClass of this cluster must have either spec.agent.defaultTargetNamespace or spec.agent.matchNamespaces.",
		}
	}
	target := classTarget
	if annotated, ok := p.Annotations[fleetv1alpha1.TargetNamespaceAnnotation]; ok {
		if len(validation.IsDNS1123Label(annotated)) > 0 {
			return "", &condition.Problem{
				Reason: reason.ReasonTargetNamespaceInvalid,
				Message: fmt.Sprintf("The annotation %s of the namespace %q is not the name of a namespace.",
					fleetv1alpha1.TargetNamespaceAnnotation, p.Namespace),
			}
		}
		target = annotated
	}
	switch {
	case isControlPlane(target) || slices.Contains(p.Protected, target):
		return "", &condition.Problem{
			Reason:  reason.ReasonTargetNamespaceNotAllowed,
			Message: fmt.Sprintf("Claims cannot go to the namespace %q of the hub, because it is reserved for the hub itself.", target),
		}
	case !p.mayChoose(target, classTarget):
		return "", &condition.Problem{
			Reason: reason.ReasonTargetNamespaceNotAllowed,
			Message: fmt.Sprintf("Claims cannot go to the namespace %q of the hub, because spec.agent.allowedTargetNamespaces of the "+
				"EnrollmentClass %q does not allow it.", target, p.Class),
		}
	}
	return target, nil
}

// mayChoose is whether the class lets claims go to a target, given the one that follows from the class.
func (p *Pairing) mayChoose(target, classTarget string) bool {
	switch {
	case target == p.Agent.DefaultTargetNamespace:
		return true // The class names it.
	case p.Agent.AllowedTargetNamespaces == nil:
		return target == classTarget || !p.asManager()
	}
	return p.Allowed(target)
}

// withdrawn is whether claims may not be in a namespace of the hub any more, whatever their target is now: it is
// reserved, or none of the class's allowedTargetNamespaces. A class that lists none has taken none away.
func (p *Pairing) withdrawn(namespace string) bool {
	switch {
	case isControlPlane(namespace) || slices.Contains(p.Protected, namespace):
		return true
	case namespace == p.Agent.DefaultTargetNamespace || p.Agent.AllowedTargetNamespaces == nil:
		return false
	}
	return !p.Allowed(namespace)
}

// asManager is whether the claims are carried with the manager's own rights.
func (p *Pairing) asManager() bool {
	_, annotated := p.Annotations[fleetv1alpha1.CredentialsSecretNameAnnotation]
	return !annotated && p.Agent.Identity == nil
}

// isControlPlane is whether a namespace of the hub is one that by convention holds a part of the control plane:
// Kubernetes' own, those that end in -system, as Crossplane's, Cluster API's with its providers, and Masthead's do, and
// cert-manager's.
func isControlPlane(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || strings.HasSuffix(namespace, "-system") || namespace == "cert-manager"
}

// NamespaceAnnotations are those of the claims' namespace, as far as they are known.
func (p *Pairing) NamespaceAnnotations() map[string]string {
	if p == nil {
		return nil
	}
	return p.Annotations
}
