// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// preflight checks whether the hub has what the import needs.
func (r *Reconciler) preflight(ctx context.Context, s *scope) (hub capabilities, res result, err error) {
	if err := s.wanted.Validate(); err != nil {
		return hub, res, stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonInvalidSpec, "The spec is invalid: %s", err)
	}
	known, _ := r.kinds.Get(s.wanted.Cloud)
	if hub.schemas, _ = known.(reflection.Schemas); hub.schemas == nil {
		hub.schemas, err = r.observeKinds(ctx, s.wanted.Cloud)
		if unserved, ok := errors.AsType[*reflection.NotServedError](err); ok {
			err = stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsMissing, "%s", unserved)
		}
		if err != nil {
			return hub, res, err
		}
		r.kinds.Add(s.wanted.Cloud, hub.schemas, kindsFor)
	}
	for kind := range hub.schemas {
		if err := r.watch(ctx, hub.schemas.Kind(kind)); err != nil {
			return hub, res, err
		}
	}
	if hub.configAllows, err = r.providerConfig(ctx, s, hub.schemas); err != nil {
		return hub, res, err
	}
	if !hub.configAllows(s.imp.Namespace) {
		if res, err = r.revoke(ctx, s); err != nil {
			return hub, res, err
		}
		return hub, res, stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonProviderConfigNotAllowed, "The %s %q does not allow this namespace in its annotation %s",
			s.wanted.ProviderConfig.Kind, s.wanted.ProviderConfig.Name, fleetv1alpha1.ImportAllowedNamespacesAnnotation)
	}
	res.succeed(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonPreflightPassed, "The hub serves every kind that is needed, and the provider configuration exists")
	return hub, res, nil
}

func managedKinds(s *scope, hub capabilities) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, kind := range reflection.Kinds(s.wanted.Cloud) {
		if gvk, _, found := hub.schemas.Managed(kind); found {
			all = append(all, gvk)
		}
	}
	return all
}

// observeKinds queries the hub for the kinds of a cloud, and for the manager's rights to them.
func (r *Reconciler) observeKinds(ctx context.Context, name reflection.Cloud) (reflection.Schemas, error) {
	found := reflection.Schemas{}
	for _, kind := range reflection.Kinds(name) {
		if err := r.lookManaged(ctx, kind, found); err != nil {
			return nil, err
		}
	}
	if err := r.oneGeneration(ctx, name, found); err != nil {
		return nil, err
	}
	for _, kind := range reflection.ReflectedKinds(name) {
		is, _, err := r.getSchema(ctx, kind)
		if errors.Is(err, errNotServed) {
			return nil, stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsMissing,
				"The hub does not serve %s: install the provider of Cluster API for %s", kind, name)
		}
		if err != nil {
			return nil, err
		}
		found[kind] = is
	}
	return found, nil
}

// oneGeneration checks that either all kinds of a cloud are namespaced, or none. A mix would use two provider
// configurations of the same name, and only that of the cluster's kind is checked against what the import may use.
func (r *Reconciler) oneGeneration(ctx context.Context, name reflection.Cloud, served reflection.Schemas) error {
	var legacy []reflection.Kind
	kinds := reflection.Kinds(name)
	for _, kind := range kinds {
		if _, namespaced, _ := served.Managed(kind); !namespaced {
			legacy = append(legacy, kind)
		}
	}
	if len(legacy) == 0 || len(legacy) == len(kinds) {
		return nil
	}
	missing := legacy[0].Namespaced()
	if r.inactive(ctx, missing) {
		return stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsInactive,
			"The ManagedResourceDefinition of %s is not active, while others of its cloud are: activate it with a ManagedResourceActivationPolicy", missing)
	}
	return stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsMissing,
		"The hub does not serve %s, while it serves other namespaced kinds of its cloud", missing)
}

// lookManaged looks up a kind of managed resource, in both of its groups. The first that is served is the one that is
// used.
func (r *Reconciler) lookManaged(ctx context.Context, kind reflection.Kind, into reflection.Schemas) error {
	for _, gk := range []schema.GroupKind{kind.Namespaced(), kind.Legacy()} {
		found, crd, err := r.getSchema(ctx, gk)
		switch {
		case errors.Is(err, errNotServed):
			continue
		case err != nil:
			return err
		case !observes(crd):
			return stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsTooOld,
				"The CRD of %s has no managementPolicies with the value Observe: update the Crossplane provider", gk)
		}
		into[gk] = found.Observed() // The rest is large, and nothing is checked against it.
		return nil
	}
	for _, gk := range []schema.GroupKind{kind.Namespaced(), kind.Legacy()} {
		if r.inactive(ctx, gk) {
			return stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsInactive,
				"The ManagedResourceDefinition of %s is not active: activate it with a ManagedResourceActivationPolicy", gk)
		}
	}
	return stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsMissing, "The hub does not serve %s: install the Crossplane provider for %s", kind, kind.Provider)
}

// errNotServed means that the hub does not serve a kind.
var errNotServed = errors.New("the hub does not serve the kind")

// getSchema returns the schema of a kind with its CRD, or errNotServed. The rights on the kind are checked first: CRDs
// are large, and users decide how often an import is reconciled.
func (r *Reconciler) getSchema(
	ctx context.Context, kind schema.GroupKind,
) (reflection.Schema, *apiextensionsv1.CustomResourceDefinition, error) {
	mapping, err := r.mapping(ctx, kind)
	if err != nil {
		return reflection.Schema{}, nil, err
	}
	if err := r.mayMake(ctx, mapping.Resource.GroupResource()); err != nil {
		return reflection.Schema{}, nil, err
	}
	crd, err := r.getCRD(ctx, mapping.Resource.GroupResource())
	if err != nil {
		return reflection.Schema{}, nil, err
	}
	found, err := reflection.NewSchema(crd)
	return found, crd, err //nolint:wrapcheck // It names the kind.
}

// mapping returns the resource of a kind, or errNotServed. The mapper may miss a kind whose version is new to its
// group: what the CRD says counts. Plurals are regular.
func (r *Reconciler) mapping(ctx context.Context, kind schema.GroupKind) (*meta.RESTMapping, error) {
	mapping, err := r.mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		guess, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		version, missing := r.servedVersion(ctx, guess.GroupResource())
		if missing != nil {
			return nil, missing
		}
		mapping, err = r.mapper.RESTMapping(kind, version)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find out whether the hub serves %s: %w", kind, err)
	}
	return mapping, nil
}

// servedVersion returns a version of a kind that the hub serves, no matter which: all have the same objects.
func (r *Reconciler) servedVersion(ctx context.Context, resource schema.GroupResource) (string, error) {
	crd, err := r.getCRD(ctx, resource)
	if err != nil {
		return "", err
	}
	crd.Labels = nil
	found, err := reflection.NewSchema(crd)
	return found.Version, err //nolint:wrapcheck // It names the kind.
}

// getCRD returns a CRD, or errNotServed.
func (h *hubObjects) getCRD(ctx context.Context, resource schema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := h.live.Get(ctx, client.ObjectKey{Name: resource.String()}, u); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, errNotServed
		}
		return nil, fmt.Errorf("cannot get CustomResourceDefinition %q: %w", resource, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		return nil, fmt.Errorf("cannot decode CustomResourceDefinition %q: %w", resource, err)
	}
	return crd, nil
}

// whereServed reads objects of a kind in a version that the hub serves, no matter which, or returns errNotServed. The
// mapper keeps versions that are no longer served: what is not found there may exist.
func (r *Reconciler) whereServed(ctx context.Context, kind schema.GroupKind, read func(schema.GroupVersionKind) error) error {
	mapping, err := r.mapping(ctx, kind)
	if err != nil {
		return err
	}
	gvk := mapping.GroupVersionKind
	if gvk.Group == clusterv1.GroupVersion.Group {
		gvk.Version = clusterv1.GroupVersion.Version // References have another form in others.
	}
	if err := read(gvk); !isNotServed(err) {
		return err
	}
	if gvk.Version, err = r.servedVersion(ctx, mapping.Resource.GroupResource()); err != nil {
		return err
	}
	return read(gvk)
}

// isNotServed reports whether a kind is not served in a version, as opposed to an object that does not exist.
func isNotServed(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err)
}

// observes reports whether all versions of a managed resource support the policy Observe: its provider may use any.
func observes(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Served && (v.Schema == nil || v.Schema.OpenAPIV3Schema == nil || !hasObserve(v.Schema.OpenAPIV3Schema))
	})
}

func hasObserve(s *apiextensionsv1.JSONSchemaProps) bool {
	policies := s.Properties["spec"].Properties["managementPolicies"]
	if policies.Items == nil || policies.Items.Schema == nil {
		return false
	}
	return slices.ContainsFunc(policies.Items.Schema.Enum, func(j apiextensionsv1.JSON) bool {
		var value string
		return json.Unmarshal(j.Raw, &value) == nil && value == "Observe"
	})
}

// inactive reports whether a kind exists only as an inactive ManagedResourceDefinition. Their plurals are regular.
func (r *Reconciler) inactive(ctx context.Context, gk schema.GroupKind) bool {
	mrd := &unstructured.Unstructured{}
	mrd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Kind: "ManagedResourceDefinition"})
	if err := r.live.Get(ctx, client.ObjectKey{Name: strings.ToLower(gk.Kind) + "s." + gk.Group}, mrd); err != nil {
		return false
	}
	state, _, err := unstructured.NestedString(mrd.Object, "spec", "state")
	return err == nil && state != "Active"
}

// mayImport checks whether the manager has a right that it has only with all that every import needs. Without it,
// nothing is read that a user of the hub names in a ClusterImport.
func (r *Reconciler) mayImport(ctx context.Context) error {
	if _, found := r.kinds.Get(grantedKey{}); found {
		return nil
	}
	err := r.may(ctx, authorizationv1.ResourceAttributes{
		Group: fleetv1alpha1.GroupVersion.Group, Resource: "clusterimports", Subresource: "objects", Verb: "create",
	})
	if err == nil {
		r.kinds.Add(grantedKey{}, true, kindsFor)
	}
	return err
}

// mayMake checks whether the manager has the rights on a kind that an import needs.
func (r *Reconciler) mayMake(ctx context.Context, kind schema.GroupResource) error {
	for _, verb := range []string{"list", "create", "delete"} {
		if err := r.may(ctx, authorizationv1.ResourceAttributes{Group: kind.Group, Resource: kind.Resource, Verb: verb}); err != nil {
			return err
		}
	}
	return nil
}

// may stops an import if the manager lacks a right.
func (r *Reconciler) may(ctx context.Context, a authorizationv1.ResourceAttributes) error {
	allowed, err := r.isAllowed(ctx, a)
	if err != nil {
		return err
	}
	if !allowed {
		return stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonRightsMissing,
			"Masthead lacks the right to %s %s.%s: apply config/imports/base with the component of the cloud, "+
				"or set imports.clouds of the chart", a.Verb, path.Join(a.Resource, a.Subresource), a.Group)
	}
	return nil
}

// providerConfig returns which namespaces may use the provider configuration, if it exists.
func (r *Reconciler) providerConfig(ctx context.Context, s *scope, served reflection.Schemas) (allowsNamespace func(string) bool, err error) {
	family := reflection.Kinds(s.wanted.Cloud)[0]
	_, namespaced, _ := served.Managed(family)
	ref := s.wanted.ProviderConfig
	gk := schema.GroupKind{Group: family.Provider + ".upbound.io", Kind: ref.Kind}
	if namespaced {
		gk.Group = family.Provider + ".m.upbound.io"
	}
	notFound := stop(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonProviderConfigNotFound, "There is no %s %q", gk, ref.Name)
	mapping, err := r.mapping(ctx, gk)
	if errors.Is(err, errNotServed) {
		return nil, notFound
	}
	if err != nil {
		return nil, err
	}
	clusterScoped := mapping.Scope.Name() == meta.RESTScopeNameRoot
	key := client.ObjectKey{Name: ref.Name}
	if !clusterScoped {
		key.Namespace = s.imp.Namespace
	}
	config := &metav1.PartialObjectMetadata{}
	config.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := r.live.Get(ctx, key, config); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, notFound
		}
		return nil, fmt.Errorf("cannot get %s %q: %w", gk, key, err)
	}
	return func(namespace string) bool {
		return !clusterScoped || allows(config.Annotations[fleetv1alpha1.ImportAllowedNamespacesAnnotation], namespace)
	}, nil
}

// allows reports whether a comma-separated list of namespaces contains the namespace or is "*".
func allows(list, namespace string) bool {
	for allowed := range strings.SplitSeq(list, ",") {
		if allowed = strings.TrimSpace(allowed); allowed == "*" || allowed == namespace {
			return true
		}
	}
	return false
}
