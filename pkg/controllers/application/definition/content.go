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
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// Seen is the metadata of the definition of Applications in a cluster. Values are comparable.
type Seen struct {
	uid        types.UID
	generation int64

	// marks identify the owner.
	marks install.Marks

	// revision is the definition's revision; 0 if it is missing or invalid, so that it is repaired.
	revision int64

	// written records the last write.
	written install.Record

	deleting bool
}

// SeenIn reads the metadata of the definition.
func SeenIn(crd metav1.Object) Seen {
	revision, err := strconv.ParseInt(crd.GetAnnotations()[appsv1alpha1.DefinitionRevisionAnnotation], 10, 64)
	if err != nil || revision < 0 {
		revision = 0
	}
	written, _ := install.ParseRecord(crd.GetAnnotations()[appsv1alpha1.DefinitionWrittenAnnotation])
	return Seen{
		uid: crd.GetUID(), generation: crd.GetGeneration(),
		marks:    install.GetMarks(crd),
		revision: revision,
		written:  written,
		deleting: crd.GetDeletionTimestamp() != nil,
	}
}

// wantedDefinition is the definition embedded in this program. It is never changed.
type wantedDefinition struct {
	object   *unstructured.Unstructured
	revision int64

	// hash is the hash of the spec.
	hash string
}

// embeddedDefinition reads the definition embedded in the program.
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
	// The API server's default, set explicitly so that a conversion added by others is removed.
	if err := unstructured.SetNestedField(object.Object, "None", "spec", "conversion", "strategy"); err != nil {
		return nil, fmt.Errorf("cannot set the conversion of Applications: %w", err)
	}
	return &wantedDefinition{object: object, revision: revision, hash: objects.Digest(object.Object["spec"])}, nil
}

// record is the record of a definition written from this one, with the generation it then had.
func (w *wantedDefinition) record(generation int64) install.Record {
	return install.Record{Hash: w.hash, Generation: generation}
}

// isMastheads reports whether a Masthead installed the definition, and no other client has taken it over since.
func (s Seen) isMastheads() bool { return s.marks.IsMastheads() && !s.marks.IsControlled() }

// isIn reports whether a cluster has this definition, unchanged since it was written.
func (w *wantedDefinition) isIn(seen Seen) bool {
	return seen.isMastheads() && seen.revision == w.revision && seen.written == w.record(seen.generation)
}

// isOlder reports whether a cluster has an older definition, unchanged since a Masthead wrote it.
func (w *wantedDefinition) isOlder(seen Seen) bool {
	return seen.isMastheads() && !seen.deleting && seen.revision > 0 && seen.revision < w.revision &&
		seen.written == install.Record{Hash: seen.written.Hash, Generation: seen.generation}
}

// nextGeneration is the generation of the definition after it is written over the cluster's.
func (w *wantedDefinition) nextGeneration(have *unstructured.Unstructured) int64 {
	return install.NextGeneration(have, have != nil && SeenIn(have).written == w.record(have.GetGeneration()))
}

// over returns the object to write: over have, or new if have is nil. Metadata added by others is kept.
func (w *wantedDefinition) over(have *unstructured.Unstructured, generation int64) *unstructured.Unstructured {
	content := maps.Clone(w.object.Object)
	if have != nil {
		content["spec"] = w.keepingStored(have)
	}
	return install.Wanted{
		Content: content, Name: Name, Labels: map[string]string{fleetv1alpha1.ManagedByLabel: install.LabelValue},
		Annotations: map[string]string{
			appsv1alpha1.DefinitionRevisionAnnotation: strconv.FormatInt(w.revision, 10),
			appsv1alpha1.DefinitionWrittenAnnotation:  w.record(generation).String(),
		},
	}.Over(have)
}

// keepingStored is the spec with the versions of have that this definition no longer has but objects may still be
// stored in. They stay served as before, so that users of these versions can still write Applications.
func (w *wantedDefinition) keepingStored(have *unstructured.Unstructured) map[string]any {
	spec, _ := w.object.Object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	versions, _ := spec["versions"].([]any)
	spec["versions"] = install.KeepStored(versions, have, nil)
	return spec
}
