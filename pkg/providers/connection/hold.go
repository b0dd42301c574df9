// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
)

// classRules applies the hub's EnrollmentClasses: which enrolments may be connected, and which clusters are written to.
type classRules struct {
	required bool
	hub      client.Reader // set before the first reconcile
	quota    *quota
}

// admissionProblem returns why an enrolment must not be connected, or nil.
func (c *classRules) admissionProblem(ctx context.Context, key Key, e *Enrolment) (*condition.Error, error) {
	var byClass *condition.Error
	if c.required {
		var err error
		if byClass, err = c.holdByClass(ctx, key, e); err != nil {
			return nil, err
		}
	}
	return firstHold(byClass, e), nil
}

// firstHold returns the most important reason that holds an enrolment, or nil. Reasons with immediate effect come
// first, so that one with a grace period never hides them. Among these, the class comes first: the others are up to the
// owner of the enrolled object, from whom an administrator may just have taken the cluster.
func firstHold(byClass *condition.Error, e *Enrolment) *condition.Error {
	switch {
	case byClass != nil && atOnce(byClass.Reason):
		return byClass
	case e.Paused:
		return condition.NewError(fleetv1alpha1.ReasonPaused, "The enrolled object is paused")
	case badIdentifier(e) != nil:
		return badIdentifier(e)
	case !e.Ready:
		return condition.NewError(e.NotReadyReason, e.NotReadyMessage)
	case e.CredentialsVersion == "":
		return condition.NewError(fleetv1alpha1.ReasonNoCredentials, "There is no "+e.Secret)
	default:
		return byClass
	}
}

// atOnce reports whether a reason ends a connection without a grace period: an explicit request or denial does,
// something missing that may come back does not.
func atOnce(reason string) bool {
	return reason == fleetv1alpha1.ReasonPaused || reason == fleetv1alpha1.ReasonBadIdentifier || reason == fleetv1alpha1.ReasonNamespaceNotAllowed
}

// badIdentifier returns why the annotation of an enrolment cannot be used, or nil.
func badIdentifier(e *Enrolment) *condition.Error {
	if !probe.LikeUID(e.Identifier) {
		return nil
	}
	return condition.NewError(fleetv1alpha1.ReasonBadIdentifier, fmt.Sprintf(
		"The annotation %s has the form of a UUID, which is reserved for the UID of a cluster's namespace kube-system",
		fleetv1alpha1.ClusterIdentifierAnnotation))
}

// Allows reports whether a class allows a namespace with these labels. An invalid selector selects nothing.
func Allows(a *fleetv1alpha1.AllowedNamespaces, namespace string, namespaceLabels map[string]string) bool {
	switch {
	case a == nil:
		return false
	case len(a.List) == 0 && a.Selector == nil:
		return true
	case slices.Contains(a.List, namespace):
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(a.Selector) // A nil selector selects nothing.
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(namespaceLabels))
}

// holdByClass returns why the class of an enrolment holds it, or nil. A tenant of the hub can name any class on objects
// in their namespace: the class decides who may use it.
func (c *classRules) holdByClass(ctx context.Context, key Key, e *Enrolment) (*condition.Error, error) {
	class := &fleetv1alpha1.EnrollmentClass{}
	switch err := c.hub.Get(ctx, client.ObjectKey{Name: e.Class}, class); {
	case apierrors.IsNotFound(err):
		return condition.NewError(fleetv1alpha1.ReasonClassNotFound, fmt.Sprintf("There is no EnrollmentClass %q", e.Class)), nil
	case err != nil:
		return nil, fmt.Errorf("cannot get EnrollmentClass %q: %w", e.Class, err)
	}
	var namespaceLabels map[string]string
	if a := class.Spec.AllowedNamespaces; a != nil && a.Selector != nil {
		ns := namespaceMetadata()
		err := c.hub.Get(ctx, client.ObjectKey{Name: e.Object.Namespace}, ns)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot get the metadata of namespace %q: %w", e.Object.Namespace, err)
		}
		namespaceLabels = ns.Labels // None if the namespace is not cached yet: the watch requeues the enrolment.
	}
	if Allows(class.Spec.AllowedNamespaces, e.Object.Namespace, namespaceLabels) {
		return c.holdByQuota(key, class, e), nil
	}
	c.quota.leave(key)
	return condition.NewError(fleetv1alpha1.ReasonNamespaceNotAllowed, fmt.Sprintf(
		"EnrollmentClass %q does not allow clusters of the namespace %q (spec.allowedNamespaces)", e.Class, e.Object.Namespace)), nil
}

// holdByQuota returns a failure if an enrolment has no place in its class, or nil.
func (c *classRules) holdByQuota(key Key, class *fleetv1alpha1.EnrollmentClass, e *Enrolment) *condition.Error {
	limit := int(ptr.Deref(class.Spec.MaxClusters, 0))
	if c.quota.admit(key, class.Name, e.Object.CreationTimestamp.Time, limit) {
		return nil
	}
	return condition.NewError(fleetv1alpha1.ReasonClassFull, fmt.Sprintf(
		"EnrollmentClass %q allows at most %d clusters (spec.maxClusters), and as many others are already admitted", class.Name, limit))
}

// writes reports whether Masthead writes to the clusters of a class. An unknown class may write.
func (c *classRules) writes(ctx context.Context, name string) (bool, error) {
	if !c.required {
		return true, nil
	}
	class, err := Class(ctx, c.hub, name)
	if err != nil {
		return true, client.IgnoreNotFound(err)
	}
	return class.Spec.Agent.Mode != fleetv1alpha1.AgentModeDisabled ||
		class.Spec.Applications.Mode != fleetv1alpha1.ApplicationsModeDisabled ||
		class.Spec.References.Mode == fleetv1alpha1.ReferencesModeEnabled, nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return m
}
