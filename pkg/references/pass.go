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
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// Reader reads objects.
type Reader interface {
	// Get reads an object from the API server. Do not use a caching client.Client, which would watch every object of every
	// kind that is referenced once; use for example a manager's GetAPIReader().
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error

	// List lists metadata of objects, for selectors.
	List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error
}

// A Request says what to resolve, with which reader, and by which rules.
type Request struct {
	// Object has the references. It is not changed. Required.
	Object *unstructured.Unstructured

	// References are those of the object; see Of.
	References []commonv1alpha1.GenericReference

	// Reader reads referenced objects, each once. Required.
	Reader Reader

	// Mapper maps resources to kinds. Required.
	Mapper Mapper

	// Tenancy says what the object may reference.
	Tenancy Tenancy

	// Schema is that of the object; nil if it is not known. Its fields with the format "password" are marked for values
	// from Secrets.
	Schema *Schema

	// Marked returns the fields of other objects, by kind and version, that are marked for values from Secrets: they are
	// treated like those of Secrets. Without it, only those of the object's own kind are, by Schema.
	Marked func(schema.GroupVersionKind) *MarkedFields
}

// A Result is the result of a Request.
type Result struct {
	// Object is the object with the fields filled in. It is the one of the Request if nothing changed.
	Object *unstructured.Unstructured

	// Filled are the paths of the fields that changed, without wildcards.
	Filled []string

	// Secret says that a value was taken from a Secret, or from a field marked for them. Messages about the object must
	// then not repeat its values.
	Secret bool

	// Sources are the objects that a later Request depends on: those of unresolved references and of references that
	// follow their source, each once. While none of them changes, nor what Owners and Unserved describe, nor the object,
	// another Request fills in nothing.
	Sources []Source

	// Owners are, for these references, the namespaces for which Tenancy.Grants was or would have been called, and
	// Unserved the resources that are not served. Their outcome depends on grants there, and on whether the resources are
	// served.
	Owners   []string
	Unserved []schema.GroupResource

	// Selected says that the Sources were selected by labels, so that other objects determine which they are.
	Selected bool

	// Missing says why optional references are not resolved.
	Missing []*Error
}

// pass resolves the references of one object once.
type pass struct {
	expressions, whens *programs

	req      Request
	work     *unstructured.Unstructured
	mappings map[schema.GroupVersionResource]*meta.RESTMapping

	// permitted are the sources that the object may reference, and cache holds those that were read.
	permitted map[Source]struct{}
	cache     map[Source]read

	// selections are the names that were selected.
	selections map[selection]selected

	// filled are the fields in the Result.
	filled map[string]bool

	// bytes is the size of all filled values, and kept that of all objects in the cache.
	bytes, kept int

	// needs are those of the current reference.
	needs  needs
	result Result
}

// needs determines the outcome of a reference: the sources it read, whether they were selected, the other namespaces
// they belong to, and resources that are not served.
type needs struct {
	selected bool
	sources  []Source
	owners   []string
	unserved []schema.GroupResource
}

// depend records the needs of the current reference.
func (p *pass) depend() {
	p.result.Sources = union(p.result.Sources, p.needs.sources)
	p.result.Selected = p.result.Selected || p.needs.selected
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

// Rejected returns why an API server does not take the filled object, or nil for an error of another kind.
func Rejected(err error, result Result) *Error {
	refused := apply.Refusal(err)
	if refused == nil {
		return nil
	}
	return &Error{Index: -1, Reason: commonv1alpha1.ReasonTargetRejected, Cause: WithoutSecrets(refused, result)}
}

// WithoutSecrets returns why the API server rejected the filled object. If a value was taken from a Secret, the text is
// only general: API servers repeat the values that they reject. errors.Is and errors.As still identify the error.
func WithoutSecrets(err error, result Result) error {
	if err == nil || !result.Secret {
		return err
	}
	reason := apierrors.ReasonForError(err)
	switch {
	case reason != metav1.StatusReasonUnknown:
	case apply.Refusal(err) != nil:
		reason = metav1.StatusReasonInvalid // By an answer without a reason.
	default:
		return explained{err, "the request failed; the cause is omitted, because a Secret is involved"}
	}
	return explained{err, fmt.Sprintf("the API server refuses it (%s); the cause is omitted, because a Secret is involved",
		condition.Text(string(reason), maxText))}
}
