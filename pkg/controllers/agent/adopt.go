// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// anyNamespace stands for every namespace of a cluster in the consent to an adoption. No namespace has this name.
const anyNamespace = "*"

// adoptable is whether a claim may take over an object of the hub that names no source, or that an earlier namespace of the
// claim's name has left.
//
// The consent has to come from the hub: whoever may annotate the object there names the source. What the owner of a workload
// cluster writes is not enough, or he could take whatever the platform team made for others; his annotation only counts for
// an object that was his, as the hub's own note says, and that he gave up. Neither annotation can be brought to the hub by a
// claim, since annotations of masthead.dev do not travel. What an earlier namespace of the same name gave up is not its
// successor's.
func adoptable(obj, claim metav1.Object, us source, home residence) bool {
	if obj.GetDeletionTimestamp() != nil || us.identifier == "" || us.namespace == "" {
		return false
	}
	former := home.succeeds(obj)
	formerlyOurs := former && ownershipOf(true, obj, us) == ownershipOurs
	if _, named := sourceOf(obj); named && !formerlyOurs {
		return false
	}
	switch obj.GetAnnotations()[fleetv1alpha1.AdoptableByAnnotation] {
	case us.String(), source{us.identifier, anyNamespace}.String():
		return true
	}
	return !former && claim.GetAnnotations()[fleetv1alpha1.AdoptAnnotation] == "true" &&
		obj.GetAnnotations()[fleetv1alpha1.ReleasedFromAnnotation] == us.String()
}

// adopted returns an object of the hub with the marks of a source. The consent is used up, so that an object that is given up later is
// not taken again by accident.
func adopted(obj *unstructured.Unstructured, marks map[string]string) *unstructured.Unstructured {
	out := obj.DeepCopy()
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, fleetv1alpha1.AdoptableByAnnotation)
	delete(annotations, fleetv1alpha1.ReleasedFromAnnotation)
	maps.Copy(annotations, marks)
	out.SetAnnotations(annotations)
	return out
}

// adopt makes an object of the hub the claim's if it is not. It is written on condition that it is as it was looked at, so
// that a consent that was withdrawn meanwhile does not count. What the claim says is applied afterwards.
func (r *requirementReconciler) adopt(
	ctx context.Context, s *scope, key hubKey, hub *unstructured.Unstructured,
) (*unstructured.Unstructured, *outcome, error) {
	if hub == nil || s.owns(hub) {
		return hub, nil, nil
	}
	out := adopted(hub, s.marks(ctx, nil))
	patch := client.MergeFromWithOptions(hub, client.MergeFromWithOptimisticLock{})
	if err := r.hubClient.Patch(ctx, out, patch, client.FieldOwner(fleetv1alpha1.FieldManager)); err != nil {
		if p := problemOf(err, "patch", s.Kind.GroupResource().String(), key.Namespace); p != nil {
			return nil, &outcome{problem: p, retryAfter: slowRetry()}, nil
		}
		return nil, nil, fmt.Errorf("cannot adopt %s %q in the hub: %w", s.Kind, key.NamespacedName, err)
	}
	r.hub.observe(key, out)
	r.metrics.wrote(s.ClusterName, writeClaim)
	s.workload.recorder.Eventf(s.claim, nil, corev1.EventTypeNormal, ReasonAdopted, "Synchronise",
		"The %s %q in the namespace %q of the hub belongs to this claim from now on", s.Kind.Kind, s.Name, key.Namespace)
	return out, nil, nil
}
