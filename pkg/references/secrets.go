// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// holdsSecret reports whether a source field may hold a value from a Secret: it is in a Secret, or is marked.
func (p *pass) holdsSecret(source Source, path fieldpath.Segments) bool {
	return isSecret(source.GroupResource()) || p.isMarked(source, path)
}

// isMarked reports whether a field that is read of a source, or one of its ancestors or descendants, is marked for
// values from Secrets.
func (p *pass) isMarked(source Source, path fieldpath.Segments) bool {
	return slices.ContainsFunc(readPaths(path), func(read fieldpath.Segments) bool { return p.isMarkedAt(source, read) })
}

func (p *pass) isMarkedAt(source Source, path fieldpath.Segments) bool {
	for _, f := range p.req.Tenancy.SecretFields {
		if f.GroupKind == source.GroupKind() && overlaps(f.FieldPath, path) {
			return true
		}
	}
	if p.req.Marked != nil {
		return p.req.Marked(source.GroupVersionKind).at(path)
	}
	own := p.req.Object.GroupVersionKind()
	switch source.GroupVersionKind {
	case own:
		return p.req.Schema.markedFields().at(path)
	case own.GroupKind().WithVersion(source.Version):
		// Its fields may have other names in another version, whose schema is not known.
		return p.req.Schema.markedFields() != nil
	}
	return false
}

// mayHoldSecret reports whether a value from a Secret may be put into a field.
func (p *pass) mayHoldSecret(target fieldpath.Segments) bool {
	if p.req.Schema.mayHoldSecret(target) {
		return true
	}
	gk := p.req.Object.GroupVersionKind().GroupKind()
	for _, f := range p.req.Tenancy.SecretFields {
		if f.GroupKind == gk && covers(f.FieldPath, target) {
			return true
		}
	}
	return false
}

// permitsSecrets returns why a reference's values from Secrets, or from marked fields, may not be put into its targets;
// nil if they may, or if there are none. It is checked before anything is read: otherwise the reason of the failure
// would reveal whether a Secret has a value, or an expression yields one, and an expression can ask for one bit after
// the other.
func (p *pass) permitsSecrets(ctx context.Context, ref *commonv1alpha1.GenericReference, targets []fieldpath.Segments) *Error {
	from, err := parseSources(ref)
	if err != nil {
		return err
	}
	for _, f := range from {
		source, err := p.source(ctx, f)
		if err != nil {
			return err
		}
		why := errors.New("values of Secrets may be written only to fields that are marked for them (format: password)")
		if !isSecret(source.GroupResource()) {
			path, err := parseFrom(ref, f.FieldPath)
			if err != nil || len(path) == 0 && ref.When == "" || !p.isMarked(source, path) {
				continue // Nothing is taken by a path that cannot be parsed, nor by none.
			}
			if err := p.req.Tenancy.permitsMarked(p.req.Object.GetNamespace(), source); err != nil {
				return &Error{Reason: commonv1alpha1.ReasonNotPermitted, Source: source.String(), Path: f.FieldPath, Cause: err}
			}
			why = errors.New(
				"the referenced field is marked for values of Secrets (format: password): its value may be written only to fields that are, too")
		}
		switch {
		case ref.When != "": // All who may read the condition, and its events, see whether it is true.
			return &Error{
				Reason: commonv1alpha1.ReasonSecretNotPermitted, Source: source.String(), Path: "when", Cause: errors.New("when is not for values of Secrets"),
			}
		case ref.IsDependency():
			return &Error{Reason: commonv1alpha1.ReasonSecretNotPermitted, Source: source.String(), Path: f.FieldPath, Cause: why}
		}
		if i := slices.IndexFunc(targets, func(t fieldpath.Segments) bool { return !p.mayHoldSecret(t) }); i >= 0 {
			return &Error{Reason: commonv1alpha1.ReasonSecretNotPermitted, Path: targets[i].String(), Cause: why}
		}
	}
	return nil
}

// parseSources returns the fields of other objects from which a reference makes its value.
func parseSources(ref *commonv1alpha1.GenericReference) ([]commonv1alpha1.ReferenceSource, *Error) {
	invalid := func(format string, arguments ...any) *Error {
		return &Error{Reason: commonv1alpha1.ReasonInvalidReference, Cause: fmt.Errorf(format, arguments...)}
	}
	switch {
	case len(ref.Variables) == 0 && ref.Expression == "":
		return []commonv1alpha1.ReferenceSource{ref.Source()}, nil
	case ref.IsDependency(), ref.When != "":
		return nil, invalid("toFieldPath is required with variables, and when is not for them")
	case ref.Resource != "" || len(ref.Variables) == 0 || ref.Expression == "":
		return nil, invalid("either resource, or variables and expression, are required")
	case len(ref.Variables) > maxVariables:
		return nil, invalid("a reference can have at most %d variables", maxVariables)
	}
	out := make([]commonv1alpha1.ReferenceSource, 0, len(ref.Variables))
	for i := range ref.Variables {
		out = append(out, ref.Variables[i].FromRef)
	}
	return out, nil
}

// overlaps reports whether two paths with wildcards can lead to the same field, or to one within the other.
func overlaps(pattern string, path fieldpath.Segments) bool {
	segments, err := parsePath(pattern)
	if err != nil {
		return false
	}
	for i := range min(len(segments), len(path)) {
		if segments[i] != path[i] && !isWildcard(segments[i]) && !isWildcard(path[i]) {
			return false
		}
	}
	return true
}

// covers reports whether a path with wildcards names a field, or one that contains it.
func covers(pattern string, target fieldpath.Segments) bool {
	segments, err := parsePath(pattern)
	if err != nil || len(segments) > len(target) || len(segments) < 2 {
		return false
	}
	for i, s := range segments {
		if !isWildcard(s) && s != target[i] {
			return false
		}
	}
	return true
}
