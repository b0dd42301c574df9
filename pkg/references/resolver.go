// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/expression"
)

// A Resolver resolves references. It is immutable and safe for concurrent use.
type Resolver struct {
	expressions, whens *programs
}

// NewResolver returns a Resolver.
func NewResolver() *Resolver {
	return &Resolver{
		expressions: newPrograms(variablesName, cel.MapType(cel.StringType, cel.DynType)), whens: newPrograms(selfName, cel.DynType),
	}
}

// Resolve resolves the references of an object in order. It writes nothing. Fields filled before the first failure are
// in the Result, also when there is an error, which is an *Error.
func (r *Resolver) Resolve(ctx context.Context, req Request) (Result, error) {
	p := &pass{
		expressions: r.expressions, whens: r.whens, req: req, cache: map[Source]read{}, permitted: map[Source]struct{}{},
		mappings: map[schema.GroupVersionResource]*meta.RESTMapping{}, selections: map[selection]selected{}, filled: map[string]bool{},
		work:   req.Object.DeepCopy(),
		result: Result{Object: req.Object},
	}
	if len(req.References) > maxReferences {
		return p.result, &Error{
			Index: maxReferences, Reason: commonv1alpha1.ReasonInvalidReference, Cause: fmt.Errorf("an object can have at most %d references", maxReferences),
		}
	}
	var failed error
	for i := range req.References {
		p.needs = needs{}
		err := unavailable(ctx)
		if err == nil {
			err = p.resolve(ctx, &req.References[i])
		}
		if err != nil || req.References[i].FollowsSource() {
			p.depend()
		}
		if err == nil {
			continue
		}
		err.Index = i
		if err.IsMissing() && req.References[i].IsOptional() {
			p.result.Missing = append(p.result.Missing, err)
			continue
		}
		failed = err
		break
	}
	if len(p.result.Filled) > 0 {
		p.result.Object = p.work
	}
	return p.result, failed
}

// unavailable is the failure of a pass that took too long. Expressions ignore the context.
func unavailable(ctx context.Context) *Error {
	if err := ctx.Err(); err != nil {
		return &Error{Reason: commonv1alpha1.ReasonUnavailable, Cause: err}
	}
	return nil
}

// resolve resolves one reference.
func (p *pass) resolve(ctx context.Context, ref *commonv1alpha1.GenericReference) *Error {
	targets, err := p.targets(ref)
	if err != nil || len(targets) == 0 && !ref.IsDependency() {
		return err
	}
	if err := p.permitsSecrets(ctx, ref, targets); err != nil {
		return err
	}
	value, secret, err := p.value(ctx, ref)
	if err != nil {
		return err
	}
	for _, target := range targets {
		n, _ := size(value)
		if p.bytes += n; p.bytes > maxValueBytes {
			return &Error{Reason: commonv1alpha1.ReasonInvalidValue, Path: target.String(), Cause: fmt.Errorf("all values together have more than %d bytes", maxValueBytes)}
		}
		changed, err := fill(p.work.Object, target, runtime.DeepCopyJSONValue(value))
		if err != nil {
			return &Error{Reason: commonv1alpha1.ReasonTargetRejected, Path: target.String(), Cause: err}
		}
		if changed && !p.filled[target.String()] {
			if len(p.filled) >= maxFilled {
				return &Error{Reason: commonv1alpha1.ReasonInvalidReference, Path: target.String(), Cause: fmt.Errorf("the references of an object can fill at most %d fields", maxFilled)}
			}
			p.filled[target.String()] = true
			p.result.Filled = append(p.result.Filled, target.String())
		}
		p.result.Secret = p.result.Secret || changed && secret
	}
	return nil
}

// targets returns the fields to fill: those without a value, or all if they follow their source; none for a dependency.
func (p *pass) targets(ref *commonv1alpha1.GenericReference) ([]fieldpath.Segments, *Error) {
	if ref.IsDependency() {
		return nil, nil
	}
	segments, err := parseTarget(ref.ToFieldPath)
	if err != nil {
		return nil, &Error{Reason: commonv1alpha1.ReasonInvalidReference, Path: ref.ToFieldPath, Cause: err}
	}
	own := Source{GroupVersionKind: p.req.Object.GroupVersionKind()}
	if slices.ContainsFunc(readPaths(segments)[1:], func(compared fieldpath.Segments) bool { return p.isMarkedAt(own, compared) }) {
		return nil, &Error{
			Reason: commonv1alpha1.ReasonInvalidReference, Path: ref.ToFieldPath, Cause: errors.New("elements are not chosen by fields for values of Secrets"),
		}
	}
	all, err := expand(p.work.Object, segments)
	if errors.Is(err, errNoValue) {
		return nil, &Error{Reason: commonv1alpha1.ReasonTargetRejected, Path: ref.ToFieldPath, Cause: errors.New("the path matches nothing")}
	}
	if err != nil {
		return nil, &Error{Reason: commonv1alpha1.ReasonTargetRejected, Path: ref.ToFieldPath, Cause: err}
	}
	var targets []fieldpath.Segments
	for _, t := range all {
		_, err := valueAt(p.work.Object, t)
		switch {
		case ref.FollowsSource() && p.req.Schema.isListKey(t):
			return nil, &Error{Reason: commonv1alpha1.ReasonTargetRejected, Path: t.String(), Cause: errors.New("elements of the list are identified by " +
				"this field, so that it cannot follow its source: with another value it would be another element")}
		case err == nil && !ref.FollowsSource():
		case err != nil && !errors.Is(err, errNoValue):
			return nil, &Error{Reason: commonv1alpha1.ReasonTargetRejected, Path: t.String(), Cause: err}
		default:
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// value returns the value of a reference, and whether it involves a Secret.
func (p *pass) value(ctx context.Context, ref *commonv1alpha1.GenericReference) (value any, secret bool, err *Error) {
	if len(ref.Variables) > 0 {
		return p.compute(ctx, ref)
	}
	return p.take(ctx, ref, ref.Source())
}

// wait returns why a value is not yet as the reference requires.
func (p *pass) wait(ref *commonv1alpha1.GenericReference, source Source, value any) *Error {
	if ref.When == "" {
		return nil
	}
	program := p.whens.get(ref.When)
	if program.err != nil {
		return &Error{Reason: commonv1alpha1.ReasonInvalidReference, Path: "when", Cause: program.err}
	}
	failed := &Error{
		Reason: commonv1alpha1.ReasonNotReady, Source: source.String(), Path: ref.FromFieldPath, Cause: errors.New("when is not true yet"),
	}
	result, err := evaluate(program, selfName, value)
	switch {
	case err == nil && result == true:
		return nil
	case err == nil, strings.HasPrefix(err.Error(), "no such key"), strings.HasPrefix(err.Error(), "index out of bounds"):
		return failed // A field or an element that is not there may come.
	}
	failed.Reason, failed.Path, failed.Cause = commonv1alpha1.ReasonInvalidValue, "when", err
	return failed
}

// withoutSecret returns the error of an expression. Errors of functions repeat their arguments.
func withoutSecret(err error, secret bool) error {
	if secret && !errors.Is(err, expression.ErrTooExpensive) {
		return errors.New("it fails; the cause is omitted, because a Secret is involved")
	}
	return err
}

func (p *pass) compute(ctx context.Context, ref *commonv1alpha1.GenericReference) (value any, secret bool, err *Error) {
	program := p.expressions.get(ref.Expression)
	if program.err != nil {
		return nil, false, &Error{Reason: commonv1alpha1.ReasonInvalidReference, Path: "expression", Cause: program.err}
	}
	variables := map[string]any{}
	for i := range ref.Variables {
		v := &ref.Variables[i]
		taken, fromSecret, err := p.take(ctx, ref, v.FromRef)
		if err != nil {
			return nil, false, err
		}
		variables[v.Name], secret = taken, secret || fromSecret
	}
	value, evalErr := evaluate(program, variablesName, variables)
	if evalErr != nil {
		return nil, secret, &Error{Reason: commonv1alpha1.ReasonInvalidValue, Path: "expression", Cause: withoutSecret(evalErr, secret)}
	}
	if value == nil || value == "" {
		return nil, secret, &Error{Reason: commonv1alpha1.ReasonFieldNotFound, Path: "expression", Cause: errNoValue}
	}
	return value, secret, nil
}

// evaluate returns the value of an expression about a variable, within its bounds.
func evaluate(program program, name string, variable any) (any, error) {
	input, err := inputSize(variable)
	if err != nil {
		return nil, err
	}
	if uses := max(program.Uses, 1); input > maxExpressionInput/uses {
		return nil, fmt.Errorf("the variables together have more than %d bytes, each counted as often as the expression uses variables",
			maxExpressionInput)
	}
	result, err := expression.Evaluate(program.Program, map[string]any{name: variable})
	if err != nil {
		return nil, err
	}
	value, err := asJSON(result)
	if err != nil {
		return nil, err
	}
	_, err = size(value)
	return value, err
}

// take returns the value of a field of another object, or for a dependency without a path the object.
func (p *pass) take(ctx context.Context, ref *commonv1alpha1.GenericReference, from commonv1alpha1.ReferenceSource) (value any, secret bool, err *Error) {
	path, parseErr := parseFrom(ref, from.FieldPath)
	if parseErr != nil {
		return nil, false, &Error{Reason: commonv1alpha1.ReasonInvalidReference, Path: from.FieldPath, Cause: parseErr}
	}
	source, err := p.source(ctx, from)
	if err != nil {
		return nil, false, err
	}
	secret = p.holdsSecret(source, path)
	object, err := p.read(ctx, source)
	if err != nil {
		return nil, secret, err
	}
	if len(path) == 0 {
		return nil, secret, p.wait(ref, source, withoutManagedFields(object))
	}
	value, takeErr := takeAt(object, path)
	switch {
	case errors.Is(takeErr, errNoValue):
		return nil, secret, &Error{Reason: commonv1alpha1.ReasonFieldNotFound, Source: source.String(), Path: from.FieldPath, Cause: takeErr}
	case takeErr != nil:
		return nil, secret, &Error{Reason: commonv1alpha1.ReasonInvalidValue, Source: source.String(), Path: from.FieldPath, Cause: takeErr}
	}
	return value, secret, p.wait(ref, source, value)
}

// withoutManagedFields returns an object without what is of no use in expressions and larger than the rest.
func withoutManagedFields(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	metadata, object = maps.Clone(metadata), maps.Clone(object)
	delete(metadata, "managedFields")
	object["metadata"] = metadata
	return object
}

// takeAt returns the value at a path, or the list of the values if it has a wildcard.
func takeAt(object map[string]any, path fieldpath.Segments) (any, error) {
	paths, err := expand(object, path)
	if err != nil {
		return nil, err
	}
	hasWildcard := false
	for _, s := range path {
		hasWildcard = hasWildcard || isWildcard(s)
	}
	if !hasWildcard {
		value, err := valueAt(object, paths[0])
		if err != nil {
			return nil, err
		}
		return taken(value)
	}
	var values []any
	for _, p := range paths {
		value, err := valueAt(object, p)
		if errors.Is(err, errNoValue) {
			continue
		}
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	if len(values) == 0 {
		return nil, errNoValue
	}
	return taken(values)
}
