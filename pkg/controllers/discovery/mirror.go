// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/usermeta"
)

// managedByValue is the value of the label masthead.dev/managed-by.
const managedByValue = fleetv1alpha1.FieldManager

// mirror is an object as it shall be in workload clusters, made once for all of them. It is never changed.
type mirror struct {
	object *unstructured.Unstructured

	// hash is that of everything but the metadata.
	hash string

	// group is the API group that it is about.
	group string

	// exactLabels is whether labels that the mirror does not have are removed. They are left on what is not a copy of an
	// object: inventories of clusters label definitions and policies.
	exactLabels bool
}

func (m *mirror) name() string { return m.object.GetName() }

func newMirror(object *unstructured.Unstructured) *mirror {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[fleetv1alpha1.ManagedByLabel] = managedByValue
	object.SetLabels(labels)
	content := maps.Clone(object.Object)
	delete(content, "metadata")
	return &mirror{object: object, hash: hashOf(content)}
}

// mirrorOf returns the read-only copy of an object of the hub: its name, the labels of its users, its spec and its
// status, which share their content with it. Annotations, owner references and finalizers stay behind, and so does how
// versions are converted, which names a Service of the hub and its CA.
func mirrorOf(kind mirroredKind, hub *unstructured.Unstructured) *mirror {
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

// without returns the mirror without the labels that a class excludes. Its own label stays.
func (m *mirror) without(excluded []string) *mirror {
	labels := m.object.GetLabels()
	kept := usermeta.Owned(labels, excluded...)
	kept[fleetv1alpha1.ManagedByLabel] = managedByValue
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

// definitionOf returns the CustomResourceDefinition that makes workload clusters serve a kind of the hub: the same
// names, versions and schemas. There is nobody in a workload cluster who could convert versions, and no separate way to
// write the status: nobody there reports one, and a copy is written as a whole.
func definitionOf(hub *unstructured.Unstructured) *mirror {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(crdGVK)
	out.SetName(hub.GetName())
	spec, _ := hub.Object["spec"].(map[string]any)
	spec = runtime.DeepCopyJSON(spec)
	if spec == nil {
		spec = map[string]any{}
	}
	spec["conversion"] = map[string]any{"strategy": "None"}
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			unstructured.RemoveNestedField(version, "subresources", "status")
		}
	}
	out.Object["spec"] = spec
	return newMirror(out)
}

// isMastheads is whether an object in a workload cluster was put there by the Masthead of whichever hub.
func isMastheads(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[fleetv1alpha1.ManagedByLabel] == managedByValue
}

// record is what the annotation of a copy says: what it was made of, and the generation that it had then. A copy that
// still has this generation has not been changed since, which need not be found out by reading it, not even after a
// restart. Its cluster's owner can forge it, and deceives nobody but the users of that cluster.
type record struct {
	hash       string
	generation int64
}

func (r record) String() string { return r.hash + "/" + strconv.FormatInt(r.generation, 10) }

// recordOf reads the annotation of a copy.
func recordOf(obj *unstructured.Unstructured) (record, bool) {
	hash, number, found := strings.Cut(obj.GetAnnotations()[fleetv1alpha1.MirroredAnnotation], "/")
	generation, err := strconv.ParseInt(number, 10, 64)
	if !found || hash == "" || err != nil || generation < 0 {
		return record{}, false
	}
	return record{hash: hash, generation: generation}, true
}

// contentAsRecorded is whether a copy has the content that this mirror has, going by its annotation.
func (m *mirror) contentAsRecorded(have *unstructured.Unstructured) bool {
	r, ok := recordOf(have)
	return ok && r.hash == m.hash && r.generation == have.GetGeneration()
}

// labelled is whether a copy has the labels that it shall have, those of its hub among them.
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

// written returns the object to write: over have, whose metadata it keeps as far as they are not about the mirror, or
// anew if have is nil. It is a whole update rather than a server-side apply: what somebody added to a copy has to go,
// and an apply leaves what it does not mention.
func (m *mirror) written(have *unstructured.Unstructured, generation int64, owner hubidentity.Owner) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(m.object.Object)}
	metadata := map[string]any{"name": m.name()}
	if have != nil {
		if kept, ok := have.Object["metadata"].(map[string]any); ok {
			metadata = runtime.DeepCopyJSON(kept)
		}
	}
	out.Object["metadata"] = metadata
	labels := map[string]string{}
	if have != nil && !m.exactLabels {
		maps.Copy(labels, have.GetLabels())
	}
	maps.Copy(labels, m.object.GetLabels())
	out.SetLabels(owner.Stamp(labels))
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fleetv1alpha1.MirroredAnnotation] = record{hash: m.hash, generation: generation}.String()
	out.SetAnnotations(annotations)
	return out
}

// nextGeneration is the generation that a copy has after it is written.
func (m *mirror) nextGeneration(have *unstructured.Unstructured) int64 {
	switch {
	case have == nil:
		return 1
	case m.contentAsRecorded(have):
		return have.GetGeneration()
	}
	return have.GetGeneration() + 1
}

// metadataOf is an object without content, as a workload cluster's watch keeps it.
func metadataOf(obj *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	out := &unstructured.Unstructured{Object: map[string]any{"metadata": runtime.DeepCopyJSON(metadata)}}
	out.SetGroupVersionKind(obj.GroupVersionKind())
	return out
}

// hashOf is a hash of JSON content. Go writes the keys of maps in order.
func hashOf(content map[string]any) string {
	data, err := json.Marshal(content)
	if err != nil {
		// Content comes from JSON. What cannot go back is different from everything else.
		return fmt.Sprintf("unknown: %v", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}
