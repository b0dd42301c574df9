// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// scope is what a pass over one import starts from. It is only read, but for strangers, which r.own keeps, and for the
// end of an un-import, which goes on with the import as it has reported it.
type scope struct {
	// imp is the pass's own copy of the import.
	imp    *fleetv1alpha1.ClusterImport
	wanted reflection.Import
	// strangers have the label of the import but do not belong to it, as an event has reported.
	strangers map[objectKey]bool
}

func newScope(imp *fleetv1alpha1.ClusterImport) *scope {
	imp = imp.DeepCopy()
	return &scope{imp: imp, wanted: ownership.WantedImport(imp), strangers: map[objectKey]bool{}}
}

// newOrphanScope is for an import that is gone, reconstructed from its objects as far as un-import needs.
func newOrphanScope(key types.NamespacedName, uid types.UID, objects []*unstructured.Unstructured) *scope {
	s := newScope(&fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}})
	s.wanted.Cloud, s.wanted.ClusterName = ownership.InferCluster(objects)
	return s
}

// key names the import.
func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.imp) }

// objectKey names an object, regardless of its version.
type objectKey struct {
	schema.GroupKind
	namespace, name string
}

func newObjectKey(o client.Object) objectKey {
	return objectKey{o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}
