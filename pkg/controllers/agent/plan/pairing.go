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
)

// Pairing decides the target of the claims in one namespace of a workload cluster.
type Pairing struct {
	Class string
	Agent fleetv1alpha1.AgentSpec

	// Namespace is the claims' own, Annotations are those that its owner set on it.
	Namespace   string
	Annotations map[string]string

	// Protected are namespaces of the hub that are never a target.
	Protected []string

	// Allowed reports whether the class's allowedTargetNamespaces, if set, contain a namespace of the hub.
	Allowed func(target string) bool
}

// Target returns the claims' target namespace in the hub.
//
// Annotations and, with matchNamespaces, namespace names are chosen by the owner of a workload cluster. So both are
// limited to what the class allows or, if the class does not say, to where the identity used may write; the manager's
// own identity may write everywhere, and is no limit. Control plane namespaces are never a target.
func (p *Pairing) Target() (string, *condition.Error) {
	classTarget := p.Agent.DefaultTargetNamespace
	if p.Agent.MatchNamespaces {
		classTarget = p.Namespace
	}
	if classTarget == "" || p.Agent.MatchNamespaces && p.Agent.DefaultTargetNamespace != "" {
		return "", &condition.Error{
			Reason:  fleetv1alpha1.ReasonInvalidClass,
			Message: "The EnrollmentClass of this cluster must have either spec.agent.defaultTargetNamespace or spec.agent.matchNamespaces.",
		}
	}
	target := classTarget
	if annotated, ok := p.Annotations[fleetv1alpha1.TargetNamespaceAnnotation]; ok {
		if len(validation.IsDNS1123Label(annotated)) > 0 {
			return "", &condition.Error{
				Reason: fleetv1alpha1.ReasonTargetNamespaceInvalid,
				Message: fmt.Sprintf("The annotation %s of the namespace %q is not the name of a namespace.",
					fleetv1alpha1.TargetNamespaceAnnotation, p.Namespace),
			}
		}
		target = annotated
	}
	switch {
	case isControlPlane(target) || slices.Contains(p.Protected, target):
		return "", &condition.Error{
			Reason:  fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
			Message: fmt.Sprintf("Claims cannot target namespace %q of the hub: it is reserved for the hub, by its name or by --protected-namespaces.", target),
		}
	case !p.mayChoose(target, classTarget):
		return "", &condition.Error{
			Reason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
			Message: fmt.Sprintf("Claims cannot target namespace %q of the hub: spec.agent.allowedTargetNamespaces of the "+
				"EnrollmentClass %q does not allow it.", target, p.Class),
		}
	}
	return target, nil
}

// mayChoose reports whether the class allows a target, given the class's own target.
func (p *Pairing) mayChoose(target, classTarget string) bool {
	switch {
	case target == p.Agent.DefaultTargetNamespace:
		return true // The class names it.
	case p.Agent.AllowedTargetNamespaces == nil:
		return target == classTarget || !p.asManager()
	}
	return p.Allowed(target)
}

// Leads reports whether the class can lead claims of a namespace of the cluster to a namespace of the hub. It does to
// where this namespace's own claims go.
func (p *Pairing) Leads(namespace, target string) bool {
	classTarget := p.Agent.DefaultTargetNamespace
	if p.Agent.MatchNamespaces {
		classTarget = namespace
	}
	switch own, untargeted := p.Target(); {
	case target == classTarget, untargeted == nil && target == own:
		return true
	case p.Agent.AllowedTargetNamespaces == nil:
		return false
	}
	return p.Allowed(target)
}

// withdrawn reports whether claims may no longer be in a namespace of the hub, regardless of their current target: the
// namespace is reserved, or not in the class's allowedTargetNamespaces. A class that lists none withdraws none.
func (p *Pairing) withdrawn(namespace string) bool {
	switch {
	case isControlPlane(namespace) || slices.Contains(p.Protected, namespace):
		return true
	case namespace == p.Agent.DefaultTargetNamespace || p.Agent.AllowedTargetNamespaces == nil:
		return false
	}
	return !p.Allowed(namespace)
}

// asManager reports whether claims are pushed with the manager's own rights.
func (p *Pairing) asManager() bool {
	_, annotated := p.Annotations[fleetv1alpha1.CredentialsSecretNameAnnotation]
	return !annotated && p.Agent.Identity == nil
}

// isControlPlane reports whether a namespace of the hub by convention belongs to the control plane: Kubernetes' own,
// cert-manager's, and those ending in -system, such as those of Crossplane, Cluster API with its providers, and
// Masthead.
func isControlPlane(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || strings.HasSuffix(namespace, "-system") || namespace == "cert-manager"
}

// NamespaceAnnotations returns the annotations of the claims' namespace, as far as known.
func (p *Pairing) NamespaceAnnotations() map[string]string {
	if p == nil {
		return nil
	}
	return p.Annotations
}
