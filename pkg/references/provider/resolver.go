// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/references"
)

// A ReferenceResolver resolves the generic references of managed resources, and then their type's own references. It
// implements managed.ReferenceResolver.
type ReferenceResolver struct {
	client   client.Client
	reader   client.Reader
	mapper   references.Mapper
	resolver *references.Resolver
	tenancy  references.Tenancy
	grants   references.Lister
	schema   *references.Schema
	next     managed.ReferenceResolver
}

var _ managed.ReferenceResolver = &ReferenceResolver{}

// An Option configures a ReferenceResolver.
type Option func(*ReferenceResolver)

// WithTenancy says what managed resources may reference. By default it is references.Tenancy{}, the strictest.
func WithTenancy(t references.Tenancy) Option { return func(r *ReferenceResolver) { r.tenancy = t } }

// WithReferenceGrants lets managed resources reference other namespaces where a ReferenceGrant of the Gateway API in
// that namespace permits it, instead of the Grants of the Tenancy. The lister needs the right to list them. They are
// listed once for each managed resource whose references need one, so a lister that caches saves requests.
func WithReferenceGrants(lister references.Lister) Option {
	return func(r *ReferenceResolver) { r.grants = lister }
}

// WithSchema sets the schema of the managed resource: it says which fields may hold values from Secrets, and which
// lists are merged by keys. Without it no field may, and lists are applied whole. It also identifies fields of other
// objects of the kind that were filled from a Secret.
func WithSchema(s *references.Schema) Option { return func(r *ReferenceResolver) { r.schema = s } }

// WithNext replaces the resolver of a type's own references: by default managed.NewAPISimpleReferenceResolver, as in
// the managed reconciler.
func WithNext(next managed.ReferenceResolver) Option {
	return func(r *ReferenceResolver) { r.next = next }
}

// New returns a ReferenceResolver. The client writes managed resources. The reader reads referenced objects, and must
// not cache, as it would otherwise watch every kind that is referenced once: use the manager's GetAPIReader().
func New(c client.Client, reader client.Reader, mapper apimeta.RESTMapper, options ...Option) *ReferenceResolver {
	r := &ReferenceResolver{
		client: c, reader: reader, mapper: references.NewMapper(mapper), resolver: references.NewResolver(),
		next: managed.NewAPISimpleReferenceResolver(c),
	}
	for _, o := range options {
		o(r)
	}
	return r
}

// ResolveReferences implements managed.ReferenceResolver. Fields resolved before a failure are written.
func (r *ReferenceResolver) ResolveReferences(ctx context.Context, mg resource.Managed) error {
	if err := r.resolve(ctx, mg); err != nil {
		return err
	}
	return r.next.ResolveReferences(ctx, mg)
}

func (r *ReferenceResolver) resolve(ctx context.Context, mg resource.Managed) error {
	object, err := r.unstructured(mg)
	if err != nil {
		return err
	}
	refs, err := references.Parse(object.Object)
	if err != nil && len(references.Pending(object.Object)) > 0 {
		return fmt.Errorf("cannot read the references of the managed resource: %w", err)
	}
	if !meta.GetExternalCreateSucceeded(mg).IsZero() {
		// What had to be there first was there.
		refs = slices.DeleteFunc(refs, func(ref commonv1alpha1.GenericReference) bool { return ref.IsDependency() && !ref.FollowsSource() })
	}
	if len(refs) == 0 {
		return nil // What else is in spec.references is not meant as a reference.
	}
	tenancy := r.tenancy
	if r.grants != nil {
		tenancy.Grants = references.NewReferenceGrants(r.mapper, r.grants)
	}
	result, failed := r.resolver.Resolve(ctx, references.Request{
		Object: object, References: refs, Reader: r.reader, Mapper: r.mapper, Tenancy: tenancy, Schema: r.schema,
	})
	if len(result.Filled) > 0 {
		if err := r.apply(ctx, mg, object, result); err != nil {
			return err
		}
	}
	return failed
}

// apply writes the filled fields, and updates the managed resource with the API server's answer.
func (r *ReferenceResolver) apply(ctx context.Context, mg resource.Managed, before *unstructured.Unstructured, result references.Result) error {
	if len(before.GetManagedFields()) == 0 {
		// Without them, fields filled earlier and not now would be removed.
		return errors.New("cannot apply the resolved values: the managed resource was read without metadata.managedFields; " +
			"configure the cache not to strip them")
	}
	result, contested := references.Uncontested(before, result, r.schema)
	if len(result.Filled) == 0 {
		return contested
	}
	desired, err := references.ApplyConfiguration(before, result, references.FieldManager, r.schema)
	if err != nil {
		return fmt.Errorf("cannot apply the resolved values: %w", err)
	}
	err = apply.Update{Client: r.client, Manager: references.FieldManager}.Apply(ctx, desired, before)
	if rejected := references.Rejected(err, result); rejected != nil {
		return rejected
	}
	if err != nil {
		return fmt.Errorf("cannot apply the resolved values: %w", references.WithoutSecrets(err, result))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(desired.Object, mg); err != nil {
		return fmt.Errorf("cannot convert the answer of the API server: %w", err)
	}
	if contested != nil {
		return contested
	}
	return nil
}

func (r *ReferenceResolver) unstructured(mg resource.Managed) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(mg, r.client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("cannot find the kind of the managed resource: %w", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(mg)
	if err != nil {
		return nil, fmt.Errorf("cannot convert the managed resource: %w", err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(gvk)
	return object, nil
}
