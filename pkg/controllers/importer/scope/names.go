// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// KubeconfigName is the name that Cluster API expects of the Secret.
func KubeconfigName(imp *fleetv1alpha1.ClusterImport) string { return imp.Name + "-kubeconfig" }

// ConnectionSecretName is the Secret into which a Crossplane provider is to write connection details.
func ConnectionSecretName(imp *fleetv1alpha1.ClusterImport) string {
	return imp.Name + "-import-connection"
}

// Marks are the labels on everything that an import creates.
func Marks(imp *fleetv1alpha1.ClusterImport) map[string]string {
	return map[string]string{
		fleetv1alpha1.ImportUIDLabel: string(imp.UID), fleetv1alpha1.ImportNameLabel: imp.Name, fleetv1alpha1.ImportNamespaceLabel: imp.Namespace,
	}
}

// ImportNamedBy is the import that the labels of an object name.
func ImportNamedBy(o client.Object) types.NamespacedName {
	return types.NamespacedName{
		Namespace: o.GetLabels()[fleetv1alpha1.ImportNamespaceLabel], Name: o.GetLabels()[fleetv1alpha1.ImportNameLabel],
	}
}
