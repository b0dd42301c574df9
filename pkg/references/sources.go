// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// source returns the object that a reference names and that the object may reference.
func (p *pass) source(ctx context.Context, ref commonv1alpha1.ReferenceSource) (Source, *Error) {
	gvr := schema.GroupVersionResource{Group: ptr.Deref(ref.Group, ""), Version: ptr.Deref(ref.Version, ""), Resource: ref.Resource}
	written, failed := p.name(ref)
	if failed != nil {
		return Source{}, failed
	}
	name := types.NamespacedName{Namespace: ptr.Deref(ref.Namespace, ""), Name: written}
	meant := describe(gvr.GroupResource(), name)
	if err := validNames(gvr, name, ref.Selector != nil); err != nil {
		return Source{}, &Error{Reason: commonv1alpha1.ReasonInvalidReference, Source: meant, Cause: err}
	}
	mapping, err := p.mapping(ctx, gvr)
	if err != nil {
		return Source{}, &Error{Reason: errorReason(err), Source: meant, Cause: err}
	}
	own := p.req.Object.GetNamespace()
	switch {
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		name.Namespace = ""
	case name.Namespace == "" && own == "":
		return Source{}, &Error{Reason: commonv1alpha1.ReasonInvalidReference, Source: meant, Cause: errors.New("namespace is required in a reference of a cluster-scoped object")}
	case name.Namespace == "":
		name.Namespace = own
	}
	if ref.Selector != nil {
		among := Source{GroupVersionKind: mapping.GroupVersionKind, Resource: mapping.Resource.Resource, NamespacedName: name}
		if name.Name, failed = p.selected(ctx, among, ref.Selector.MatchLabels); failed != nil {
			return Source{}, failed
		}
	}
	source := Source{GroupVersionKind: mapping.GroupVersionKind, Resource: mapping.Resource.Resource, NamespacedName: name}
	from := p.req.Object.GroupVersionKind().GroupKind()
	if CanonicalKind(from) == CanonicalKind(source.GroupKind()) && name.Namespace == own && name.Name == p.req.Object.GetName() {
		return Source{}, &Error{Reason: commonv1alpha1.ReasonInvalidReference, Source: source.String(), Cause: errors.New("an object cannot reference itself")}
	}
	if failed = p.permit(ctx, from, own, source); failed != nil {
		return Source{}, failed
	}
	return source, nil
}

// errOneName is the error of a source with none or several.
var errOneName = errors.New("one of name, nameFieldPath and selector is required") //nolint:gochecknoglobals // A constant.

// name returns the name of a source; empty for one that is selected.
func (p *pass) name(ref commonv1alpha1.ReferenceSource) (string, *Error) {
	switch {
	case ref.Selector != nil && (ref.Name != "" || ref.NameFieldPath != ""):
		return "", &Error{Reason: commonv1alpha1.ReasonInvalidReference, Cause: errOneName}
	case ref.NameFieldPath != "":
		return p.ownName(ref)
	}
	return ref.Name, nil
}

// ownName returns the name of a source that is in a field of the object itself. Names are shown, so the field must not
// be marked for values from Secrets.
func (p *pass) ownName(ref commonv1alpha1.ReferenceSource) (string, *Error) {
	failed := &Error{Reason: commonv1alpha1.ReasonInvalidReference, Path: ref.NameFieldPath}
	path, err := parseOwn(ref.NameFieldPath)
	switch {
	case err != nil:
		failed.Cause = err
		return "", failed
	case ref.Name != "":
		failed.Cause = errOneName
		return "", failed
	case p.isMarked(Source{GroupVersionKind: p.req.Object.GroupVersionKind()}, path):
		failed.Reason, failed.Cause = commonv1alpha1.ReasonSecretNotPermitted, errors.New("a field that is marked for values of Secrets can be no name")
		return "", failed
	}
	value, err := takeAt(p.work.Object, path)
	name, isText := value.(string)
	switch {
	case errors.Is(err, errNoValue):
		failed.Reason, failed.Cause = commonv1alpha1.ReasonFieldNotFound, err
	case err == nil && isText:
		return name, nil
	case err == nil:
		failed.Reason, failed.Cause = commonv1alpha1.ReasonInvalidValue, errors.New("the name is not text")
	default:
		failed.Reason, failed.Cause = commonv1alpha1.ReasonInvalidValue, err
	}
	return "", failed
}

// mapping returns the cluster's mapping of a resource. One that was found is not requested again in the same pass.
func (p *pass) mapping(ctx context.Context, gvr schema.GroupVersionResource) (*meta.RESTMapping, error) {
	if mapping, ok := p.mappings[gvr]; ok {
		return mapping, nil
	}
	mapping, err := p.req.Mapper.MappingFor(ctx, gvr)
	if err != nil {
		if meta.IsNoMatchError(err) {
			p.needs.unserved = append(p.needs.unserved, gvr.GroupResource())
		}
		return nil, err
	}
	p.mappings[gvr] = mapping
	return mapping, nil
}

// permit returns why an object may not reference a source, or nil. own is the object's namespace.
func (p *pass) permit(ctx context.Context, from schema.GroupKind, own string, source Source) *Error {
	if own != "" && source.Namespace != "" && source.Namespace != own {
		p.needs.owners = append(p.needs.owners, source.Namespace)
	}
	if _, known := p.permitted[source]; known {
		return nil
	}
	if len(p.permitted) >= maxSources {
		return &Error{
			Reason: commonv1alpha1.ReasonInvalidValue, Source: source.String(), Cause: fmt.Errorf("an object can reference at most %d objects", maxSources),
		}
	}
	if err := p.req.Tenancy.permits(ctx, from, own, source); err != nil {
		reason := errorReason(err)
		if errors.Is(err, errNotPermitted) {
			reason = commonv1alpha1.ReasonNotPermitted
		}
		return &Error{Reason: reason, Source: source.String(), Cause: err}
	}
	p.permitted[source] = struct{}{}
	return nil
}

// validNames ensures that each name is one element of a request's path.
func validNames(gvr schema.GroupVersionResource, name types.NamespacedName, selected bool) error {
	bad := func(field, value string) error {
		return fmt.Errorf("%s %q is not valid", field, condition.Text(value, maxText))
	}
	switch {
	case len(validation.IsDNS1035Label(gvr.Resource)) > 0:
		return bad("resource", gvr.Resource)
	case gvr.Group != "" && len(validation.IsDNS1123Subdomain(gvr.Group)) > 0:
		return bad("group", gvr.Group)
	case gvr.Version != "" && len(validation.IsDNS1035Label(gvr.Version)) > 0:
		return bad("version", gvr.Version)
	case name.Namespace != "" && len(validation.IsDNS1123Label(name.Namespace)) > 0:
		return bad("namespace", name.Namespace)
	case !selected && len(validIn(name.Name)) > 0:
		return bad("name", name.Name)
	}
	return nil
}

// read reads an object, once.
func (p *pass) read(ctx context.Context, source Source) (map[string]any, *Error) {
	p.needs.sources = append(p.needs.sources, source)
	if known, ok := p.cache[source]; ok {
		return known.object, known.err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(source.GroupVersionKind)
	out := read{}
	if err := p.req.Reader.Get(ctx, source.NamespacedName, obj); err != nil {
		out.err = &Error{Reason: errorReason(err), Source: source.String(), Cause: brief(err)}
	} else if obj.GetName() != source.Name || obj.GetNamespace() != source.Namespace {
		out.err = &Error{Reason: commonv1alpha1.ReasonUnavailable, Source: source.String(), Cause: errors.New("the API server answered with another object")}
	} else if n := kept(obj.Object, maxReadBytes-p.kept); n > maxReadBytes-p.kept {
		out.err = &Error{
			Reason: commonv1alpha1.ReasonInvalidValue, Source: source.String(),
			Cause: fmt.Errorf("the referenced objects together have more than %d MiB", maxReadBytes>>20),
		}
	} else {
		p.kept += n
		out.object = decoded(obj.Object, source.GroupResource())
	}
	p.cache[source] = out
	return out.object, out.err
}

// validIn returns what is wrong with the name of an object. Names of some kinds have more characters than DNS allows,
// such as "system:node", but none that would make it more than one element of a path.
func validIn(name string) []string {
	if name == "" || name == "." || name == ".." || len(name) > 253 || strings.ContainsAny(name, "/%\\") ||
		strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return []string{"it cannot stand in the path of a request"}
	}
	return nil
}
