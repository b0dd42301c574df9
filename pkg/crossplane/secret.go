// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package crossplane

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ConnectionSecretName returns the name of the connection Secret that a claim requests, or empty.
func ConnectionSecretName(claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "writeConnectionSecretToRef", "name")
	return name
}

// SecretTypeConnection is the type of Crossplane's connection Secrets.
const SecretTypeConnection corev1.SecretType = "connection.crossplane.io/v1alpha1"
