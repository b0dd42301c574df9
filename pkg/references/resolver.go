// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/expression"
)

// Reader reads one object.
type Reader interface {
	// Get reads an object from the API server. Of a client.Client, use one that does not cache, such as a manager's
	// GetAPIReader(): a caching one would watch every object of every kind that is referenced once.
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
}

// A Resolver resolves references. It does not change, and can be used from everywhere.
type Resolver struct {
	programs *programs
}

// NewResolver returns a Resolver.
func NewResolver() *Resolver { return &Resolver{programs: newPrograms()} }

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

// Resolve resolves the references of an object in their order. It writes nothing. What the references before the first
// failure filled in is in the Result, also when there is an error, which is an *Error.
func (r *Resolver) Resolve(ctx context.Context, req Request) (Result, error) {
	p := &pass{
		resolver: r, req: req, cache: map[Source]read{}, permitted: map[Source]struct{}{},
		mappings: map[schema.GroupVersionResource]*meta.RESTMapping{},
		work:     req.Object.DeepCopy(),
		result:   Result{Object: req.Object},
	}
	if len(req.References) > maxReferences {
		return p.result, &Error{
			Index: maxReferences, Reason: ReasonInvalidReference, Cause: fmt.Errorf("an object can have %d references", maxReferences),
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

// unavailable is the failure of a pass that has taken too long. Expressions do not look at the context.
func unavailable(ctx context.Context) *Error {
	if err := ctx.Err(); err != nil {
		return &Error{Reason: ReasonUnavailable, Cause: err}
	}
	return nil
}

// pass resolves the references of one object once.
type pass struct {
	resolver *Resolver
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
			return &Error{Reason: ReasonInvalidValue, Path: target.String(), Cause: fmt.Errorf("all values together have more than %d bytes", maxTotalBytes)}
		}
		changed, err := fill(p.work.Object, target, runtime.DeepCopyJSONValue(value))
		if err != nil {
			return &Error{Reason: ReasonTargetRejected, Path: target.String(), Cause: err}
		}
		if changed {
			p.result.Filled = append(p.result.Filled, target.String())
			p.result.Secret = p.result.Secret || secret
		}
	}
	return nil
}

// permitsSecrets is why what a reference takes out of Secrets, or out of fields that are marked for them, may not be
// put into its targets; nil if it may, or takes nothing out of them. It is asked before anything is read: whether a
// Secret has a value, or an expression makes one of it, would else be told through the reason of the failure, and an
// expression can ask for one bit after the other.
func (p *pass) permitsSecrets(ctx context.Context, ref *commonv1alpha1.GenericReference, targets []fieldpath.Segments) *Error {
	from, err := sourcesOf(ref)
	if err != nil {
		return err
	}
	for _, f := range from {
		source, err := p.source(ctx, f)
		if err != nil {
			return err
		}
		why := errors.New("what a Secret holds may be put only into fields that are marked for it (format: password)")
		if !isSecret(source.GroupResource()) {
			path, err := parsePath(f.FieldPath)
			if err != nil || !p.isMarked(source, path) {
				continue // Nothing is taken by a path that cannot be parsed.
			}
			if err := p.req.Tenancy.permitsMarked(p.req.Object.GetNamespace(), source); err != nil {
				return &Error{Reason: ReasonNotPermitted, Source: source.String(), Path: f.FieldPath, Cause: err}
			}
			why = errors.New("the field that is referenced is marked for what Secrets hold (format: password), and goes only into fields that are, too")
		}
		if i := slices.IndexFunc(targets, func(t fieldpath.Segments) bool { return !p.mayHoldSecret(t) }); i >= 0 {
			return &Error{Reason: ReasonSecretNotPermitted, Path: targets[i].String(), Cause: why}
		}
	}
	return nil
}

// sourcesOf are the fields of other objects out of which a reference makes its value.
func sourcesOf(ref *commonv1alpha1.GenericReference) ([]commonv1alpha1.ReferenceSource, *Error) {
	invalid := func(format string, arguments ...any) *Error {
		return &Error{Reason: ReasonInvalidReference, Cause: fmt.Errorf(format, arguments...)}
	}
	switch {
	case len(ref.Variables) == 0 && ref.Expression == "":
		return []commonv1alpha1.ReferenceSource{ref.Source()}, nil
	case ref.Resource != "" || len(ref.Variables) == 0 || ref.Expression == "":
		return nil, invalid("either resource, or variables and expression, are required")
	case len(ref.Variables) > maxVariables:
		return nil, invalid("a reference can have %d variables", maxVariables)
	}
	out := make([]commonv1alpha1.ReferenceSource, 0, len(ref.Variables))
	for i := range ref.Variables {
		out = append(out, ref.Variables[i].FromRef)
	}
	return out, nil
}

// targets are the fields to fill: those that have no value, or all if they follow their source.
func (p *pass) targets(ref *commonv1alpha1.GenericReference) ([]fieldpath.Segments, *Error) {
	segments, err := parseTarget(ref.ToFieldPath)
	if err != nil {
		return nil, &Error{Reason: ReasonInvalidReference, Path: ref.ToFieldPath, Cause: err}
	}
	all, err := expand(p.work.Object, segments)
	if errors.Is(err, errNoValue) {
		return nil, &Error{Reason: ReasonTargetRejected, Path: ref.ToFieldPath, Cause: errors.New("there is nothing to which the path leads")}
	}
	if err != nil {
		return nil, &Error{Reason: ReasonTargetRejected, Path: ref.ToFieldPath, Cause: err}
	}
	var targets []fieldpath.Segments
	for _, t := range all {
		_, err := valueAt(p.work.Object, t)
		switch {
		case ref.FollowsSource() && p.req.Schema.isListKey(t):
			return nil, &Error{Reason: ReasonTargetRejected, Path: t.String(), Cause: errors.New("elements of the list are told apart by " +
				"this field, so that it cannot follow its source: with another value it would be another element")}
		case err == nil && !ref.FollowsSource():
		case err != nil && !errors.Is(err, errNoValue):
			return nil, &Error{Reason: ReasonTargetRejected, Path: t.String(), Cause: err}
		default:
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// value is the value of a reference, and whether a Secret has to do with it.
func (p *pass) value(ctx context.Context, ref *commonv1alpha1.GenericReference) (value any, secret bool, err *Error) {
	if len(ref.Variables) == 0 {
		return p.take(ctx, ref.Source())
	}
	return p.compute(ctx, ref)
}

func (p *pass) compute(ctx context.Context, ref *commonv1alpha1.GenericReference) (value any, secret bool, err *Error) {
	program := p.resolver.programs.get(ref.Expression)
	if program.err != nil {
		return nil, false, &Error{Reason: ReasonInvalidReference, Path: "expression", Cause: program.err}
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
			// Messages of functions repeat what they were called with.
			evalErr = errors.New("it fails; why is not said, as a Secret has to do with it")
		}
		return nil, secret, &Error{Reason: ReasonInvalidValue, Path: "expression", Cause: evalErr}
	}
	if value == nil || value == "" {
		return nil, secret, &Error{Reason: ReasonFieldNotFound, Path: "expression", Cause: errNoValue}
	}
	return value, secret, nil
}

// evaluate is the value of an expression within its bounds.
func evaluate(program program, variables map[string]any) (any, error) {
	input, err := inputSize(variables)
	if err != nil {
		return nil, err
	}
	if uses := max(program.Uses, 1); input > maxExpressionInput/uses {
		return nil, fmt.Errorf("the variables have together more than %d bytes, each counted as often as variables are used", maxExpressionInput)
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

// take is the value of a field of another object.
func (p *pass) take(ctx context.Context, ref commonv1alpha1.ReferenceSource) (value any, secret bool, err *Error) {
	path, parseErr := parsePath(ref.FieldPath)
	if parseErr != nil {
		return nil, false, &Error{Reason: ReasonInvalidReference, Path: ref.FieldPath, Cause: parseErr}
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
		return nil, secret, &Error{Reason: ReasonFieldNotFound, Source: source.String(), Path: ref.FieldPath, Cause: takeErr}
	case takeErr != nil:
		return nil, secret, &Error{Reason: ReasonInvalidValue, Source: source.String(), Path: ref.FieldPath, Cause: takeErr}
	}
	return value, secret, nil
}

// takeAt is the value at a path, or the list of the values if it has a wildcard.
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
		value, err := valueAt(object, path)
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

// reasonOf is the reason of what an API server said.
func reasonOf(err error) string {
	switch {
	case meta.IsNoMatchError(err):
		return ReasonKindNotServed
	case apierrors.IsNotFound(err):
		return ReasonSourceNotFound
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return ReasonForbidden
	}
	return ReasonUnavailable
}

// brief is an error for people who see the object's name beside it.
func brief(err error) error {
	if apierrors.IsNotFound(err) {
		return explained{err, "it does not exist"}
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonForbidden {
		return explained{err, "reading it is forbidden"}
	}
	return err
}

// explained is an error in other words.
type explained struct {
	error

	words string
}

func (e explained) Error() string { return e.words }
func (e explained) Unwrap() error { return e.error }
