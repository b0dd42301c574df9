// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// kind is a kind that the server has. It is not modified.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   string
	namespaced bool
	status     bool

	// unconditional is whether an update may be without a resource version.
	unconditional bool

	// generations is whether the server counts the changes of everything but metadata and status.
	generations bool

	// definition is the name of the definition of a custom kind.
	definition string

	managers  map[string]*managedfields.FieldManager
	schema    *structuralschema.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
}

// builtin are the kinds without a definition.
var builtin = sync.OnceValue(func() []*kind { //nolint:gochecknoglobals // A constant that takes a second to make.
	core := applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)
	kinds := []*kind{
		{gvk: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, resource: "namespaces", status: true},
		{gvk: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, resource: "secrets", namespaced: true},
		{gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, resource: "configmaps", namespaced: true},
		{gvk: schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, resource: "events", namespaced: true},
		{gvk: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, resource: "leases", namespaced: true},
		{gvk: definitionKind, resource: definitions.Resource, status: true, generations: true},
	}
	for _, k := range kinds {
		converter := core
		if k.gvk == definitionKind {
			converter = managedfields.NewDeducedTypeConverter()
		}
		k.unconditional = k.gvk != definitionKind && k.gvk.Kind != "Lease"
		if err := k.setManagers(converter); err != nil {
			panic(err)
		}
	}
	return kinds
})

var (
	definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	definitions    = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}
	namespaces     = schema.GroupResource{Resource: "namespaces"}
)

func (k *kind) setManagers(converter managedfields.TypeConverter) error {
	k.managers = map[string]*managedfields.FieldManager{}
	version := fieldpath.APIVersion(k.gvk.GroupVersion().String())
	for sub, reset := range map[string][]string{"": {"status"}, "status": {"metadata", "spec"}} {
		if !k.status {
			reset = nil
		}
		paths := fieldpath.NewSet()
		for _, path := range reset {
			paths.Insert(fieldpath.MakePathOrDie(path))
		}
		m, err := managedfields.NewDefaultCRDFieldManager(converter, unversioned{}, unversioned{}, unversioned{}, k.gvk, k.gvk.GroupVersion(), sub,
			map[fieldpath.APIVersion]fieldpath.Filter{version: fieldpath.NewExcludeSetFilter(paths)})
		if err != nil {
			return fmt.Errorf("cannot manage the fields of %s: %w", k.gvk, err)
		}
		k.managers[sub] = m
	}
	return nil
}

// unversioned converts, defaults and creates objects of kinds with one version.
type unversioned struct{}

// Convert implements runtime.ObjectConvertor.
func (unversioned) Convert(in, out, _ any) error {
	from, okFrom := in.(*unstructured.Unstructured)
	to, okTo := out.(*unstructured.Unstructured)
	if !okFrom || !okTo {
		return fmt.Errorf("cannot convert %T to %T", in, out)
	}
	to.Object = from.Object
	return nil
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (unversioned) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (unversioned) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (unversioned) Default(runtime.Object) {}

// New implements runtime.ObjectCreater.
func (unversioned) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj, nil
}

// customKinds are the kinds made so far, by the spec of their definition, since schemas take long to compile.
var customKinds sync.Map //nolint:gochecknoglobals // A cache.

// newKind returns the kind that a definition defines.
func newKind(definition *unstructured.Unstructured) (*kind, error) {
	spec, err := json.Marshal(definition.Object["spec"])
	if err != nil {
		return nil, err
	}
	if k, ok := customKinds.Load(string(spec)); ok {
		known := *k.(*kind) //nolint:forcetypeassert // Nothing else is stored.
		return &known, nil
	}
	k, err := compile(definition)
	if err != nil {
		return nil, err
	}
	customKinds.Store(string(spec), k)
	known := *k
	return &known, nil
}

func compile(definition *unstructured.Unstructured) (*kind, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, crd); err != nil {
		return nil, err
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("definition %q has %d versions, and only one is supported", crd.Name, len(crd.Spec.Versions))
	}
	version := crd.Spec.Versions[0]
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, err
	}
	k := &kind{
		gvk:      schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind},
		resource: crd.Spec.Names.Plural, namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		status:      version.Subresources != nil && version.Subresources.Status != nil,
		generations: true, definition: crd.Name,
	}
	var err error
	if k.schema, err = structuralschema.NewStructural(internal); err != nil {
		return nil, err
	}
	if k.validator, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, err
	}
	k.rules = cel.NewValidator(k.schema, true, celconfig.PerCallLimit)
	openAPI, err := builder.BuildOpenAPIV3(crd, version.Name, builder.Options{StripValueValidation: true, StripNullable: true})
	if err != nil {
		return nil, err
	}
	converter, err := managedfields.NewTypeConverter(openAPI.Components.Schemas, false)
	if err != nil {
		return nil, err
	}
	return k, k.setManagers(converter)
}

// decoded prepares an object from a request. The result of an apply is not prepared like this: it can have nulls.
func (k *kind) decoded(obj *unstructured.Unstructured) {
	if k.schema != nil {
		defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, k.schema)
	}
	k.normalize(obj)
}

// normalize brings an object into the form in which it is stored: typed fields, pruned and with defaults.
func (k *kind) normalize(obj *unstructured.Unstructured) {
	if typed, err := clientgoscheme.Scheme.New(k.gvk); err == nil {
		if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed) == nil {
			obj.Object, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
			obj.SetGroupVersionKind(k.gvk)
		}
	}
	typed, untyped := metav1.ObjectMeta{}, obj.Object["metadata"]
	if m, ok := untyped.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &typed) == nil {
		obj.Object["metadata"], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
		if typed.CreationTimestamp.IsZero() {
			unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
		}
	}
	switch {
	case k.schema != nil:
		pruning.PruneWithOptions(obj.Object, k.schema, true, structuralschema.UnknownFieldPathOptions{})
		defaulting.Default(obj.Object, k.schema)
	case k.gvk.Kind == "Secret":
		if obj.Object["type"] == nil {
			obj.Object["type"] = "Opaque"
		}
	}
}

// validate checks an object as the strategy of custom resources does. What an update leaves as it was is not checked.
func (k *kind) validate(ctx context.Context, obj, old *unstructured.Unstructured) field.ErrorList {
	switch {
	case k.schema != nil && old == nil:
		errs := validation.ValidateCustomResource(nil, obj.Object, k.validator)
		return k.checkRules(ctx, errs, obj, nil)
	case k.schema != nil:
		unchanged := common.NewCorrelatedObject(obj.Object, old.Object, &model.Structural{Structural: k.schema})
		errs := validation.ValidateCustomResourceUpdate(nil, obj.Object, old.Object, k.validator, validation.WithRatcheting(unchanged))
		return k.checkRules(ctx, errs, obj, old.Object, cel.WithRatcheting(unchanged))
	case k.gvk.Kind == "Secret" && old != nil && obj.Object["type"] != old.Object["type"]:
		return field.ErrorList{field.Invalid(field.NewPath("type"), obj.Object["type"], "field is immutable")}
	}
	return nil
}

// checkRules checks the rules of a schema if nothing else is wrong: they expect values of their types.
func (k *kind) checkRules(
	ctx context.Context, errs field.ErrorList, obj *unstructured.Unstructured, old any, options ...cel.Option,
) field.ErrorList {
	if len(errs) == 0 {
		errs, _ = k.rules.Validate(ctx, nil, k.schema, obj.Object, old, celconfig.RuntimeCELCostBudget, options...)
	}
	return errs
}
