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

// Adoptable reports whether a claim may take over an object of the hub that names no source, or that an earlier
// namespace of the claim's name has left.
//
// The consent has to come from the hub, by naming the source in an annotation there. The owner of a workload cluster
// cannot consent alone, or they could take what the platform team made for others; their annotation only counts for an
// object that was theirs, according to the hub's own note, and that they gave up. A claim cannot bring either
// annotation to the hub, since masthead.dev annotations are not pushed. A namespace does not inherit what an earlier
// one of its name gave up.
func Adoptable(obj, claim metav1.Object, us Source, home Residence) bool {
	if obj.GetDeletionTimestamp() != nil || us.Identifier == "" || us.Namespace == "" {
		return false
	}
	former := home.Succeeds(obj)
	formerlyOurs := former && Classify(true, obj, us) == Ours
	if _, named := GetSource(obj); named && !formerlyOurs {
		return false
	}
	switch consent, _ := getAnnotation(obj, fleetv1alpha1.AdoptableByAnnotation); consent {
	case us.String(), Source{Identifier: us.Identifier, Namespace: anyNamespace}.String():
		return true
	}
	adopt, _ := getAnnotation(claim, fleetv1alpha1.AdoptAnnotation)
	from, _ := getAnnotation(obj, fleetv1alpha1.ReleasedFromAnnotation)
	return !former && adopt == "true" && from == us.String()
}

// Adopted returns an object of the hub with the marks of a source. The consent is removed, so that an object given up
// later is not adopted again by accident.
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
