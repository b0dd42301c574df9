// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// Reader reads one object.
type Reader interface {
	// Get reads an object from the API server. Of a client.Client, use one that does not cache, such as a manager's
	// GetAPIReader(): a caching one would watch every object of every kind that is referenced once.
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
}

// A Request is what is to be resolved, with whose eyes, and by which rules.
type Request struct {
	// Object has the references. It is not changed. Required.
	Object *unstructured.Unstructured

	// References are those of the object; see Of.
	References []commonv1alpha1.GenericReference

	// Reader reads what is referenced: each object once. Required.
	Reader Reader

	// Mapper says which kinds are meant. Required.
	Mapper Mapper

	// Tenancy says what the object may reference.
	Tenancy Tenancy

	// Schema is that of the object; nil if it is not known. Its fields with the format "password" are marked for what
	// Secrets hold.
	Schema *Schema

	// Marked says which fields of other objects, by their kind and version, are marked for what Secrets hold: they are
	// treated like those of Secrets. Without it, only those of the object's own kind are, by Schema.
	Marked func(schema.GroupVersionKind) *MarkedFields
}

// A Result is what came of a Request.
type Result struct {
	// Object is the object with the fields filled in. It is the one of the Request if nothing changed.
	Object *unstructured.Unstructured

	// Filled are the paths of the fields that changed, without wildcards.
	Filled []string

	// Secret is whether one of the values was taken from a Secret, or from a field that is marked for them. What is said
	// about the object then must not repeat them.
	Secret bool

	// Sources are the objects on which more depends: those of the references that are not resolved, and of those that
	// follow their source, each once. As long as none of them changes, nor what Owners and Unserved are about, and the
	// object does not, another Request fills in nothing.
	Sources []Source

	// Owners are, of these same references, the namespaces in which Tenancy.Grants was or would have been asked, and
	// Unserved the resources that are not served. What they come to depends on grants there, and on the resources' being
	// served.
	Owners   []string
	Unserved []schema.GroupResource

	// Missing says of optional references why they are not resolved.
	Missing []*Error
}

// pass resolves the references of one object once.
type pass struct {
	programs *programs
	req      Request
	work     *unstructured.Unstructured
	mappings map[schema.GroupVersionResource]*meta.RESTMapping

	// permitted are the sources that the object may reference, and cache those of them that were read.
	permitted map[Source]struct{}
	cache     map[Source]read

	// bytes are those of all values that were filled in, and kept those of all objects in the cache.
	bytes, kept int

	// needs are those of the current reference.
	needs  needs
	result Result
}

// needs are what decides what a reference comes to: the sources at which it looked, the namespaces of others to which
// they belong, and what is not served.
type needs struct {
	sources  []Source
	owners   []string
	unserved []schema.GroupResource
}

// depend notes that more depends on what the current reference needs.
func (p *pass) depend() {
	p.result.Sources = union(p.result.Sources, p.needs.sources)
	p.result.Owners = union(p.result.Owners, p.needs.owners)
	p.result.Unserved = union(p.result.Unserved, p.needs.unserved)
}

func union[T comparable](have, more []T) []T {
	for _, m := range more {
		if !slices.Contains(have, m) {
			have = append(have, m)
		}
	}
	return have
}

// read is an object as paths see it, or why there is none.
type read struct {
	object map[string]any
	err    *Error
}

// WithoutSecrets is why the API server refused what a Result filled in. If a value was taken from a Secret, it says so
// only in general: API servers repeat the values that they refuse. Of what such an error is, errors.Is and errors.As
// still tell.
func WithoutSecrets(err error, result Result) error {
	if err == nil || !result.Secret {
		return err
	}
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown {
		return explained{err, "the request failed; why is not said, as a Secret has to do with it"}
	}
	return explained{err, fmt.Sprintf("the API server refuses it (%s); why is not said, as a Secret has to do with it", clean(string(reason)))}
}
