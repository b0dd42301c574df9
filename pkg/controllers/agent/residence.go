// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// ownership is whose an object of the hub is, from the point of view of the claim.
func (s *scope) ownership(obj metav1.Object) ownership.State {
	owned := ownership.Of(true, obj, s.us)
	if owned == ownership.Ours && s.home.Succeeds(obj) {
		return ownership.Former
	}
	return owned
}

// owns is whether an object of the hub is the claim's.
func (s *scope) owns(obj metav1.Object) bool { return s.ownership(obj) == ownership.Ours }

// namespaceRecreated is why a claim does not get what an earlier namespace of the same name had.
func namespaceRecreated(kind, target, name string, us ownership.Source) *condition.Problem {
	return &condition.Problem{
		Reason: reason.ReasonNamespaceRecreated,
		Message: fmt.Sprintf("The %s %q in the namespace %q of the hub belongs to an earlier namespace %q of this cluster, which was deleted. "+
			"Its infrastructure and its Secrets are not given to another namespace of that name. Choose another name, or have the object deleted in "+
			"the hub, or annotated there with %s: %s.", kind, name, target, us.Namespace, fleetv1alpha1.AdoptableByAnnotation, us),
	}
}
