// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	workloadcrd "github.com/masthead-dev/masthead/config/crd/workload"
)

// managedByValue is the value of the label masthead.dev/managed-by.
const managedByValue = fleetv1alpha1.FieldManager

// Seen is what the metadata of the definition of Applications in a cluster says. It is a value, so that two
// of them can be compared.
type Seen struct {
	uid        types.UID
	generation int64

	// ours is whether Masthead put it there. One that has a controller is that one's, although it bears our label.
	ours bool

	// hub is the identity of the hub that the definition names.
	hub string

	// revision is that of the definition; 0 if it says none that can be understood, so that it is put right.
	revision int64

	// written is the annotation that says what was written, and the generation that it had then. Its cluster's owner can
	// forge it, and deceives nobody but the users of that cluster.
	written string

	deleting bool
}

// SeenIn reads the metadata of the definition.
func SeenIn(crd metav1.Object) Seen {
	revision, err := strconv.ParseInt(crd.GetAnnotations()[appsv1alpha1.DefinitionRevisionAnnotation], 10, 64)
	if err != nil || revision < 0 {
		revision = 0
	}
	return Seen{
		uid: crd.GetUID(), generation: crd.GetGeneration(),
		ours:     crd.GetLabels()[fleetv1alpha1.ManagedByLabel] == managedByValue && metav1.GetControllerOfNoCopy(crd) == nil,
		hub:      crd.GetLabels()[fleetv1alpha1.HubLabel],
		revision: revision,
		written:  crd.GetAnnotations()[appsv1alpha1.DefinitionWrittenAnnotation],
		deleting: crd.GetDeletionTimestamp() != nil,
	}
}

// wantedDefinition is the definition as this program has it. It is never changed.
type wantedDefinition struct {
	object   *unstructured.Unstructured
	revision int64

	// hash is that of the spec.
	hash string
}

// embeddedDefinition reads the definition that is part of the program.
func embeddedDefinition() (*wantedDefinition, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(workloadcrd.Applications, &object.Object); err != nil {
		return nil, fmt.Errorf("cannot read the definition of Applications: %w", err)
	}
	return newWantedDefinition(object)
}

func newWantedDefinition(object *unstructured.Unstructured) (*wantedDefinition, error) {
	revision, err := strconv.ParseInt(object.GetAnnotations()[appsv1alpha1.DefinitionRevisionAnnotation], 10, 64)
	if err != nil || revision < 1 || object.GetName() != Name {
		return nil, fmt.Errorf("the definition of %q has no revision", object.GetName())
	}
	// The default of the API server, said aloud: a conversion that somebody adds has to go.
	if err := unstructured.SetNestedField(object.Object, "None", "spec", "conversion", "strategy"); err != nil {
		return nil, fmt.Errorf("cannot set the conversion of Applications: %w", err)
	}
	spec, err := json.Marshal(object.Object["spec"]) // Go writes the keys of maps in order.
	if err != nil {
		return nil, fmt.Errorf("cannot hash the definition of Applications: %w", err)
	}
	sum := sha256.Sum256(spec)
	return &wantedDefinition{object: object, revision: revision, hash: hex.EncodeToString(sum[:16])}, nil
}

// record is the annotation of a definition that was written from this one and had this generation then.
func (w *wantedDefinition) record(generation int64) string {
	return w.hash + "/" + strconv.FormatInt(generation, 10)
}

// isIn is whether a cluster has this definition and nobody has changed it since it was written. The API server's own
// changes, by defaults or by dropping what it does not know, are in the generation already.
func (w *wantedDefinition) isIn(seen Seen) bool {
	return seen.ours && seen.revision == w.revision && seen.written == w.record(seen.generation)
}

// isOlder is whether a cluster has an older definition, as the Masthead left it that wrote it.
func (w *wantedDefinition) isOlder(seen Seen) bool {
	_, generation, _ := strings.Cut(seen.written, "/")
	return seen.ours && !seen.deleting && seen.revision > 0 && seen.revision < w.revision && generation == strconv.FormatInt(seen.generation, 10)
}

// nextGeneration is the generation that the definition has after it is written over what the cluster has.
func (w *wantedDefinition) nextGeneration(have *unstructured.Unstructured) int64 {
	switch {
	case have == nil:
		return 1
	case SeenIn(have).written == w.record(have.GetGeneration()):
		// Only its metadata is wrong.
		return have.GetGeneration()
	}
	return have.GetGeneration() + 1
}

// over returns the object to write: over have, whose metadata it keeps as far as they are not about the definition, or
// anew if have is nil. It is a whole update rather than a server-side apply: what somebody added to the definition has
// to go, and an apply leaves what it does not mention. The resource version keeps it from undoing what it has not seen.
func (w *wantedDefinition) over(have *unstructured.Unstructured, generation int64) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(w.object.Object)}
	metadata := map[string]any{"name": Name}
	if have != nil {
		if kept, ok := have.Object["metadata"].(map[string]any); ok {
			metadata = runtime.DeepCopyJSON(kept)
			delete(metadata, "managedFields")
		}
		out.Object["spec"] = w.keepingStored(have)
	}
	out.Object["metadata"] = metadata
	labels, annotations := orEmpty(out.GetLabels()), orEmpty(out.GetAnnotations())
	labels[fleetv1alpha1.ManagedByLabel] = managedByValue
	annotations[appsv1alpha1.DefinitionRevisionAnnotation] = strconv.FormatInt(w.revision, 10)
	annotations[appsv1alpha1.DefinitionWrittenAnnotation] = w.record(generation)
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	return out
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// keepingStored is the spec with those versions of have which this definition does not have any more and in which
// objects may still be stored. An API server does not let such a version go. They stay as they are, but nothing new is
// stored in them.
func (w *wantedDefinition) keepingStored(have *unstructured.Unstructured) map[string]any {
	spec, _ := w.object.Object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	ours, _ := spec["versions"].([]any)
	theirs, _, _ := unstructured.NestedSlice(have.Object, "spec", "versions")
	stored, _, _ := unstructured.NestedStringSlice(have.Object, "status", "storedVersions")
	versions := slices.Clone(ours)
	for _, name := range stored {
		named := func(v any) bool {
			version, ok := v.(map[string]any)
			return ok && version["name"] == name
		}
		i := slices.IndexFunc(theirs, named)
		if i < 0 || slices.ContainsFunc(versions, named) {
			continue
		}
		version, _ := theirs[i].(map[string]any)
		version["storage"] = false
		versions = append(versions, version)
	}
	spec["versions"] = versions
	return spec
}
