// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/expression"
)

// A Resolver resolves references. It is immutable and safe for concurrent use.
type Resolver struct {
	programs *programs
}

// NewResolver returns a Resolver.
func NewResolver() *Resolver { return &Resolver{programs: newPrograms()} }

// Resolve resolves the references of an object in order. It writes nothing. Fields filled before the first failure are
// in the Result, also when there is an error, which is an *Error.
func (r *Resolver) Resolve(ctx context.Context, req Request) (Result, error) {
	p := &pass{
		programs: r.programs, req: req, cache: map[Source]read{}, permitted: map[Source]struct{}{},
		mappings: map[schema.GroupVersionResource]*meta.RESTMapping{},
		work:     req.Object.DeepCopy(),
		result:   Result{Object: req.Object},
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
	if err != nil || len(targets) == 0 {
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
		if p.bytes += n; p.bytes > maxTotalBytes {
			return &Error{Reason: commonv1alpha1.ReasonInvalidValue, Path: target.String(), Cause: fmt.Errorf("all values together have more than %d bytes", maxTotalBytes)}
		}
		changed, err := fill(p.work.Object, target, runtime.DeepCopyJSONValue(value))
		if err != nil {
			return &Error{Reason: commonv1alpha1.ReasonTargetRejected, Path: target.String(), Cause: err}
		}
		if changed {
			p.result.Filled = append(p.result.Filled, target.String())
			p.result.Secret = p.result.Secret || secret
		}
	}
	return nil
}

// targets returns the fields to fill: those without a value, or all if they follow their source.
func (p *pass) targets(ref *commonv1alpha1.GenericReference) ([]fieldpath.Segments, *Error) {
	segments, err := parseTarget(ref.ToFieldPath)
	if err != nil {
		return nil, &Error{Reason: commonv1alpha1.ReasonInvalidReference, Path: ref.ToFieldPath, Cause: err}
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
	if len(ref.Variables) == 0 {
		return p.take(ctx, ref.Source())
	}
	return p.compute(ctx, ref)
}

func (p *pass) compute(ctx context.Context, ref *commonv1alpha1.GenericReference) (value any, secret bool, err *Error) {
	program := p.programs.get(ref.Expression)
	if program.err != nil {
		return nil, false, &Error{Reason: commonv1alpha1.ReasonInvalidReference, Path: "expression", Cause: program.err}
	}
	variables := map[string]any{}
	for i := range ref.Variables {
		v := &ref.Variables[i]
		taken, fromSecret, err := p.take(ctx, v.FromRef)
		if err != nil {
			return nil, false, err
		}
		variables[v.Name], secret = taken, secret || fromSecret
	}
	value, evalErr := evaluate(program, variables)
	if evalErr != nil {
		if secret && !errors.Is(evalErr, expression.ErrTooExpensive) {
			// Errors of functions repeat their arguments.
			evalErr = errors.New("it fails; the cause is omitted, because a Secret is involved")
		}
		return nil, secret, &Error{Reason: commonv1alpha1.ReasonInvalidValue, Path: "expression", Cause: evalErr}
	}
	if value == nil || value == "" {
		return nil, secret, &Error{Reason: commonv1alpha1.ReasonFieldNotFound, Path: "expression", Cause: errNoValue}
	}
	return value, secret, nil
}

// evaluate returns the value of an expression within its bounds.
func evaluate(program program, variables map[string]any) (any, error) {
	input, err := inputSize(variables)
	if err != nil {
		return nil, err
	}
	if uses := max(program.Uses, 1); input > maxExpressionInput/uses {
		return nil, fmt.Errorf("the variables together have more than %d bytes, each counted as often as the expression uses variables",
			maxExpressionInput)
	}
	result, err := expression.Evaluate(program.Program, map[string]any{variablesName: variables})
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

// take returns the value of a field of another object.
func (p *pass) take(ctx context.Context, ref commonv1alpha1.ReferenceSource) (value any, secret bool, err *Error) {
	path, parseErr := parsePath(ref.FieldPath)
	if parseErr != nil {
		return nil, false, &Error{Reason: commonv1alpha1.ReasonInvalidReference, Path: ref.FieldPath, Cause: parseErr}
	}
	source, err := p.source(ctx, ref)
	if err != nil {
		return nil, false, err
	}
	secret = p.holdsSecret(source, path)
	object, err := p.read(ctx, source)
	if err != nil {
		return nil, secret, err
	}
	value, takeErr := takeAt(object, path)
	switch {
	case errors.Is(takeErr, errNoValue):
		return nil, secret, &Error{Reason: commonv1alpha1.ReasonFieldNotFound, Source: source.String(), Path: ref.FieldPath, Cause: takeErr}
	case takeErr != nil:
		return nil, secret, &Error{Reason: commonv1alpha1.ReasonInvalidValue, Source: source.String(), Path: ref.FieldPath, Cause: takeErr}
	}
	return value, secret, nil
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
