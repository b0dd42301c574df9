// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/objects"
	"github.com/masthead-dev/masthead/pkg/usermeta"
)

// mirror is the desired state of an object in workload clusters, built once for all of them. It is immutable.
type mirror struct {
	object *unstructured.Unstructured

	// hash covers everything except the metadata.
	hash string

	// group is the API group that it concerns.
	group string

	// exactLabels reports whether labels that the mirror does not have are removed, see install.Wanted.
	exactLabels bool
}

func (m *mirror) name() string { return m.object.GetName() }

func newMirror(object *unstructured.Unstructured) *mirror {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[fleetv1alpha1.ManagedByLabel] = install.LabelValue
	object.SetLabels(labels)
	content := maps.Clone(object.Object)
	delete(content, "metadata")
	return &mirror{object: object, hash: objects.Digest(content)}
}

// mirrorFor returns the read-only copy of a hub object: its name, its users' labels, and its spec and status, which
// share memory with it. Annotations, owner references, finalizers and conversion settings, which name a Service of the
// hub and its CA, are left out.
func mirrorFor(kind mirroredKind, hub *unstructured.Unstructured) *mirror {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(hub.GroupVersionKind())
	out.SetName(hub.GetName())
	out.SetLabels(usermeta.Owned(hub.GetLabels()))
	spec, _ := hub.Object["spec"].(map[string]any)
	if spec != nil {
		out.Object["spec"] = withoutConversion(spec)
	}
	if status, ok := hub.Object["status"].(map[string]any); ok {
		out.Object["status"] = status
	}
	m := newMirror(out)
	m.group, m.exactLabels = kind.groupOf(spec), true
	return m
}

// without returns the mirror without the labels that a class excludes. Masthead's own label stays.
func (m *mirror) without(excluded []string) *mirror {
	labels := m.object.GetLabels()
	kept := usermeta.Owned(labels, excluded...)
	kept[fleetv1alpha1.ManagedByLabel] = install.LabelValue
	if maps.Equal(kept, labels) {
		return m
	}
	out := *m
	out.object = &unstructured.Unstructured{Object: maps.Clone(m.object.Object)}
	metadata, _ := m.object.Object["metadata"].(map[string]any)
	out.object.Object["metadata"] = maps.Clone(metadata)
	out.object.SetLabels(kept)
	return &out
}

func withoutConversion(spec map[string]any) map[string]any {
	out := maps.Clone(spec)
	delete(out, "conversion")
	if template, ok := out["crdSpecTemplate"].(map[string]any); ok {
		template = maps.Clone(template)
		delete(template, "conversion")
		out["crdSpecTemplate"] = template
	}
	return out
}

// newDefinitionMirror returns the CustomResourceDefinition that makes workload clusters serve a hub kind: the same
// names, versions and schemas. It has no conversion, which nothing in a workload cluster could do, and no status
// subresource: no controller there reports a status, and a copy is written in one request.
func newDefinitionMirror(hub *unstructured.Unstructured) *mirror {
	out, spec := install.DefinitionLike(hub)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			unstructured.RemoveNestedField(version, "subresources", "status")
		}
	}
	return newMirror(out)
}

// contentAsRecorded reports whether a copy has this mirror's content, judged by its annotation.
func (m *mirror) contentAsRecorded(have *unstructured.Unstructured) bool {
	r, ok := install.ParseRecord(have.GetAnnotations()[fleetv1alpha1.MirroredAnnotation])
	return ok && r == install.Record{Hash: m.hash, Generation: have.GetGeneration()}
}

// labelled reports whether a copy has the desired labels, including those of its hub.
func (m *mirror) labelled(have *unstructured.Unstructured, owner hubidentity.Owner) bool {
	want, got := m.object.GetLabels(), have.GetLabels()
	if !owner.IsStamped(have) {
		return false
	}
	if m.exactLabels {
		delete(got, fleetv1alpha1.HubLabel) // Which is a copy.
		return maps.Equal(want, got)
	}
	for k, v := range want {
		if got[k] != v {
			return false
		}
	}
	return true
}

// written returns the object to write: an update of have, or a new one if have is nil.
func (m *mirror) written(have *unstructured.Unstructured, generation int64) *unstructured.Unstructured {
	return install.Wanted{
		Content: m.object.Object, Name: m.name(), Labels: m.object.GetLabels(), ExactLabels: m.exactLabels,
		Annotations: map[string]string{fleetv1alpha1.MirroredAnnotation: install.Record{Hash: m.hash, Generation: generation}.String()},
	}.Over(have)
}

// nextGeneration is the generation that a copy has after the write.
func (m *mirror) nextGeneration(have *unstructured.Unstructured) int64 {
	return install.NextGeneration(have, have != nil && m.contentAsRecorded(have))
}

// reduceToMetadata strips an object to its metadata, as a workload cluster's watch keeps it.
func reduceToMetadata(obj *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	out := &unstructured.Unstructured{Object: map[string]any{"metadata": runtime.DeepCopyJSON(metadata)}}
	out.SetGroupVersionKind(obj.GroupVersionKind())
	return out
}
