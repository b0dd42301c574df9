// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// HubNamespace is the place in the hub where a claim waits for a namespace. The hub's watcher does not watch
// namespaces: the manager's cache has them already, for the classes' allowedNamespaces.
func HubNamespace(name string) ownership.Place {
	return ownership.Place{Kind: kindwatch.Kind{GroupVersionKind: namespaceGVK, Resource: "namespaces"}, NamespacedName: types.NamespacedName{Name: name}}
}

// NamespaceMetadata returns an empty namespace for reading from the manager's cache of hub namespaces.
func NamespaceMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return m
}
