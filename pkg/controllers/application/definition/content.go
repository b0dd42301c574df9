// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	workloadcrd "github.com/masthead-dev/masthead/config/crd/workload"
	"github.com/masthead-dev/masthead/pkg/managed"
)

// Seen is what the metadata of the definition of Applications in a cluster says. It is a value, so that two
// of them can be compared.
type Seen struct {
	uid        types.UID
	generation int64

	// marks say whose it is.
	marks managed.Marks

	// revision is that of the definition; 0 if it says none that can be understood, so that it is put right.
	revision int64

	// written is the record of what was written.
	written managed.Record

	deleting bool
}

// SeenIn reads the metadata of the definition.
func SeenIn(crd metav1.Object) Seen {
	revision, err := strconv.ParseInt(crd.GetAnnotations()[appsv1alpha1.DefinitionRevisionAnnotation], 10, 64)
	if err != nil || revision < 0 {
		revision = 0
	}
	written, _ := managed.ParseRecord(crd.GetAnnotations()[appsv1alpha1.DefinitionWrittenAnnotation])
	return Seen{
		uid: crd.GetUID(), generation: crd.GetGeneration(),
		marks:    managed.MarksOf(crd),
		revision: revision,
		written:  written,
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
	return &wantedDefinition{object: object, revision: revision, hash: managed.HashOf(object.Object["spec"])}, nil
}

// record is that of a definition that was written from this one and had this generation then.
func (w *wantedDefinition) record(generation int64) managed.Record {
	return managed.Record{Hash: w.hash, Generation: generation}
}

// isMastheads is whether a Masthead put a definition there, and nobody has taken it over since.
func (s Seen) isMastheads() bool { return s.marks.IsMastheads() && !s.marks.IsControlled() }

// isIn is whether a cluster has this definition and nobody has changed it since it was written.
func (w *wantedDefinition) isIn(seen Seen) bool {
	return seen.isMastheads() && seen.revision == w.revision && seen.written == w.record(seen.generation)
}

// isOlder is whether a cluster has an older definition, as the Masthead left it that wrote it.
func (w *wantedDefinition) isOlder(seen Seen) bool {
	return seen.isMastheads() && !seen.deleting && seen.revision > 0 && seen.revision < w.revision &&
		seen.written == managed.Record{Hash: seen.written.Hash, Generation: seen.generation}
}

// nextGeneration is the generation that the definition has after it is written over what the cluster has.
func (w *wantedDefinition) nextGeneration(have *unstructured.Unstructured) int64 {
	return managed.NextGeneration(have, have != nil && SeenIn(have).written == w.record(have.GetGeneration()))
}

// over returns the object to write: over have, or anew if have is nil. What others have added to its metadata stays.
func (w *wantedDefinition) over(have *unstructured.Unstructured, generation int64) *unstructured.Unstructured {
	content := maps.Clone(w.object.Object)
	if have != nil {
		content["spec"] = w.keepingStored(have)
	}
	return managed.Wanted{
		Content: content, Name: Name, Labels: map[string]string{fleetv1alpha1.ManagedByLabel: managed.LabelValue},
		Annotations: map[string]string{
			appsv1alpha1.DefinitionRevisionAnnotation: strconv.FormatInt(w.revision, 10),
			appsv1alpha1.DefinitionWrittenAnnotation:  w.record(generation).String(),
		},
	}.Over(have)
}

// keepingStored is the spec with those versions of have which this definition does not have any more and in which
// objects may still be stored. They are served as they were: whoever wrote an Application in one still can.
func (w *wantedDefinition) keepingStored(have *unstructured.Unstructured) map[string]any {
	spec, _ := w.object.Object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	versions, _ := spec["versions"].([]any)
	spec["versions"] = managed.KeepStored(versions, have, nil)
	return spec
}
