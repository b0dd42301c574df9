// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// classNotFound is reported if the claim's cluster names a class that does not exist.
func classNotFound(name string) *condition.Error {
	return &condition.Error{
		Reason:  fleetv1alpha1.ReasonClassNotFound,
		Message: fmt.Sprintf("The EnrollmentClass %q, with which this cluster is enrolled, does not exist.", name),
	}
}

// paused is reported if the claim's owner paused it.
func paused(what string) *condition.Error {
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonReconcilePaused,
		Message: fmt.Sprintf("This claim is paused by its annotation %s: %s. %s until the annotation is removed.",
			fleetv1alpha1.PausedAnnotation, fleetv1alpha1.PausedAnnotationTrue, what),
	}
}

// targetChanged is reported if a claim is not synchronised because its object is not in the target namespace.
func targetChanged(place, key ownership.Place) *condition.Error {
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonTargetNamespaceChanged,
		Message: fmt.Sprintf("This claim was pushed to the namespace %q of the hub, and its target is %q now. It is not moved; "+
			"delete it and create it again, change the namespace back, or annotate it with %s: %s.", place.Namespace, key.Namespace,
			fleetv1alpha1.OnTargetChangeAnnotation, fleetv1alpha1.OnTargetChangeRecreate),
	}
}

// conflict is reported if the claim's place in the hub is taken. It names the holder by identifier and namespace, which
// the hub's administrator lets clusters know of each other, and reveals nothing else of the holder's object.
func conflict(kind, target, name, holder string) *condition.Error {
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonConflict,
		Message: fmt.Sprintf("The name %q of kind %s in the namespace %q of the hub is taken by %s. Nothing was written; "+
			"this claim is synchronised as soon as the name is free.", name, kind, target, holder),
	}
}

// Full is reported if a claim is not pushed because of a limit of its class.
func Full(class string, limit int32, ofNamespace bool) *condition.Error {
	of, field := "cluster", "maxClaims"
	if ofNamespace {
		of, field = "namespace", "maxClaimsPerNamespace"
	}
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonClaimLimitReached,
		Message: fmt.Sprintf("The hub has %d objects of claims of this %s, or left by its deleted claims, and the EnrollmentClass %q allows no more "+
			"(spec.agent.%s). This claim is pushed as soon as there is room.", limit, of, class, field),
	}
}

// Deleting is reported while a claim waits for the hub.
func Deleting(kind, target, name string) *condition.Error {
	return &condition.Error{
		Reason:  fleetv1alpha1.ReasonDeleting,
		Message: fmt.Sprintf("Waiting until the %s %q in the namespace %q of the hub is deleted.", kind, name, target),
	}
}

// Held is reported when only the finalizers of others keep a deleted claim.
func Held(finalizers []string) *condition.Error {
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonDeleting,
		Message: multicluster.BoundedText(fmt.Sprintf("Masthead has released this claim. It is gone when others have removed their finalizers: %s.",
			strings.Join(finalizers, ", "))),
	}
}

// namespaceRecreated is reported if the object belongs to an earlier namespace of the same name.
func namespaceRecreated(kind, target, name string, us ownership.Source) *condition.Error {
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonNamespaceRecreated,
		Message: fmt.Sprintf("The %s %q in the namespace %q of the hub belongs to an earlier namespace %q of this cluster, which was deleted. "+
			"Its infrastructure and its Secrets are not given to another namespace of that name. Choose another name, or have the object deleted in "+
			"the hub, or annotated there with %s: %s.", kind, name, target, us.Namespace, fleetv1alpha1.AdoptableByAnnotation, us),
	}
}

// kindNotOffered is reported if the hub does not publish the kind, or not to the claim's cluster, or not in the claim's
// version.
func kindNotOffered(kind, inHub kindwatch.Kind) *condition.Error {
	p := &condition.Error{
		Reason:  fleetv1alpha1.ReasonKindNotOffered,
		Message: fmt.Sprintf("The hub does not offer %s to this cluster.", kind.GroupResource()),
	}
	if kind != inHub {
		p.Message = fmt.Sprintf("The hub has %s in the version %q, and this cluster in the version %q. This claim is not synchronised, and can be deleted.",
			kind.GroupResource(), inHub.Version, kind.Version)
	}
	return p
}

// Moving is reported while a claim's object is being deleted, to be recreated in another namespace.
func Moving(st Step) *condition.Error {
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonMoving,
		Message: fmt.Sprintf("The %s %q in the namespace %q of the hub is being deleted, and will be created again in %q.",
			st.At.Kind.Kind, st.At.Name, st.At.Namespace, st.To.Namespace),
	}
}
