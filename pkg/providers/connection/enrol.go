// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// EnrolledClass returns the name of the EnrollmentClass that an object's labels name, and whether the object is
// enrolled at all.
func EnrolledClass(labels map[string]string) (string, bool) {
	switch v := labels[fleetv1alpha1.EnrollLabel]; v {
	case "", fleetv1alpha1.EnrollLabelFalse:
		return "", false
	case fleetv1alpha1.EnrollLabelTrue:
		return fleetv1alpha1.DefaultEnrollmentClassName, true
	default:
		return v, true
	}
}

// CredentialsVersion returns what tells one version of a Secret from any other, also from one of a later Secret of the
// same name.
func CredentialsVersion(secret metav1.Object) string {
	return string(secret.GetUID()) + "/" + secret.GetResourceVersion()
}

// KeyOf returns the key of an object of a source.
func KeyOf(sourceName string, nn types.NamespacedName) Key {
	return Key{Source: sourceName, Namespace: nn.Namespace, Name: nn.Name}
}
