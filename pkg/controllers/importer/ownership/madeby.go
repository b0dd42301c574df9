// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/reflection"
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
func ImportNamedBy(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{
		Namespace: o.GetLabels()[fleetv1alpha1.ImportNamespaceLabel], Name: o.GetLabels()[fleetv1alpha1.ImportNameLabel],
	}
}

// MarkedBy reports whether an object has the label of an import. That suffices for an object of the very name that the
// import gives. An object that was found by its label has to be MadeBy the import as well.
func MarkedBy(o metav1.Object, imp reflection.Import) bool {
	return o.GetLabels()[fleetv1alpha1.ImportUIDLabel] == string(imp.UID)
}

// MadeBy reports whether an import made an object. Labels are copied, by people and by restoring a backup into another
// namespace: such a copy is not the import's, and can refer to real objects.
func MadeBy(o *unstructured.Unstructured, imp reflection.Import) bool {
	return MarkedBy(o, imp) && imp.Makes(o)
}
