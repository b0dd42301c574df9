// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// anyNamespace stands for every namespace of a cluster in the consent to an adoption. No namespace has this name.
const anyNamespace = "*"

// Adoptable is whether a claim may take over an object of the hub that names no source, or that an earlier namespace of
// the claim's name has left.
//
// The consent has to come from the hub: whoever may annotate the object there names the source. What the owner of a
// workload cluster writes is not enough, or he could take whatever the platform team made for others; his annotation
// only counts for an object that was his, as the hub's own note says, and that he gave up. Neither annotation can be
// brought to the hub by a claim, since annotations of masthead.dev do not travel. What an earlier namespace of the same
// name gave up is not its successor's.
func Adoptable(obj, claim metav1.Object, us Source, home Residence) bool {
	if obj.GetDeletionTimestamp() != nil || us.Identifier == "" || us.Namespace == "" {
		return false
	}
	former := home.Succeeds(obj)
	formerlyOurs := former && Of(true, obj, us) == Ours
	if _, named := SourceOf(obj); named && !formerlyOurs {
		return false
	}
	switch consent, _ := annotationOf(obj, fleetv1alpha1.AdoptableByAnnotation); consent {
	case us.String(), Source{Identifier: us.Identifier, Namespace: anyNamespace}.String():
		return true
	}
	adopt, _ := annotationOf(claim, fleetv1alpha1.AdoptAnnotation)
	from, _ := annotationOf(obj, fleetv1alpha1.ReleasedFromAnnotation)
	return !former && adopt == "true" && from == us.String()
}

// Adopted returns an object of the hub with the marks of a source. The consent is used up, so that an object that is
// given up later is not taken again by accident.
func Adopted(obj *unstructured.Unstructured, marks map[string]string) *unstructured.Unstructured {
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
