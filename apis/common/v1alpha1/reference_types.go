// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// References is embedded inline in the spec of a kind whose objects can reference values of other objects.
type References struct {
	// references fill fields of this object with values of other objects. They are resolved in the order of the list, up
	// to the first failure.
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	References []GenericReference `json:"references,omitempty"`
}

// A GenericReference copies a value from a field of another object into a field of this object. The value is that of
// one field (resource, name and fromFieldPath), or is computed from several (variables and expression). Without
// toFieldPath it is a dependency: it is resolved once the object is there, with a value in the field if it names one.
//
// +kubebuilder:validation:XValidation:rule="has(self.variables) == has(self.expression)",message="variables and expression are used together"
// +kubebuilder:validation:ExactlyOneOf=resource;variables
// +kubebuilder:validation:ExactlyOneOf=name;nameFieldPath;selector;variables
// +kubebuilder:validation:AtMostOneOf=fromFieldPath;variables
// +kubebuilder:validation:AtMostOneOf=when;variables
// +kubebuilder:validation:XValidation:rule="has(self.toFieldPath) || !has(self.variables)",message="variables need toFieldPath"
// +kubebuilder:validation:XValidation:rule="has(self.fromFieldPath) || !has(self.toFieldPath) || has(self.variables)",message="toFieldPath needs a value"
// +kubebuilder:validation:XValidation:rule="has(self.resource) || !(has(self.group) || has(self.version) || has(self.namespace))",message="group, version and namespace are for resource: with variables, each fromRef has its own"
type GenericReference struct {
	// resource is the API name of the kind of the referenced object, plural and in lower case, for example configmaps.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Resource string `json:"resource,omitempty"`

	// name of the referenced object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// nameFieldPath, instead of name, is the field of this object with the name of the referenced one: metadata.name, or a
	// field in spec, which an earlier reference may have filled.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	NameFieldPath string `json:"nameFieldPath,omitempty"`

	// selector, instead of name, finds the referenced object by its labels: it must be the only one that has them in the
	// namespace. It is found in the namespace of this object only, or among cluster-scoped objects. Secrets are not found.
	// +optional
	Selector *ReferenceSelector `json:"selector,omitempty"`

	// fromFieldPath is the field of the referenced object that the value is taken from, for example data.region,
	// status.endpoints[0].host or metadata.annotations[crossplane.io/external-name]. With a wildcard, spec.subnets[*].id,
	// it is the list of all values; with status.conditions[type=Ready].status it is that of the one element with that type.
	// The data of a Secret and the binaryData of a ConfigMap are decoded; they must be text.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	FromFieldPath string `json:"fromFieldPath,omitempty"`

	// toFieldPath is the field of this object to fill. It must be in spec, and not in spec.references. With a wildcard,
	// spec.nodePools[*].region, the field is filled in each existing element.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^spec[.[]') && !self.matches('^spec[.[]references([].[]|$)')",message="toFieldPath is a field in spec, and not in spec.references"
	// +optional
	ToFieldPath string `json:"toFieldPath,omitempty"`

	// when must be true before the value is taken, in CEL as in expression. self is the value of fromFieldPath, or without
	// that the whole referenced object. It is not for values of Secrets.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	When string `json:"when,omitempty"`

	// group is the API group of the resource. Absent means the core group, which has Secrets and ConfigMaps.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group *string `json:"group,omitempty"`

	// version of the API group in which the referenced object is read. Absent means the API server's preferred version,
	// which can change when it is upgraded.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Version *string `json:"version,omitempty"`

	// namespace of the referenced object. Absent means the namespace of this object.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace *string `json:"namespace,omitempty"`

	// variables are the inputs of expression.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Variables []ReferenceVariable `json:"variables,omitempty"`

	// expression computes the value from the variables, in CEL: "arn:aws:s3:::" + variables.bucket. It has only functions
	// whose result is about as large as their arguments, and loops (all, exists, filter, map) that are not nested. Its
	// value is text, a number, a boolean, a list or an object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Expression string `json:"expression,omitempty"`

	// policy says when the value is taken, and what happens if it is missing.
	// +optional
	Policy *ReferencePolicy `json:"policy,omitempty"`
}

// A ReferenceVariable is a value that an expression uses.
type ReferenceVariable struct {
	// name of the variable in the expression: variables.<name>.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	// +required
	Name string `json:"name"`

	// fromRef is the source of the value.
	// +required
	FromRef ReferenceSource `json:"fromRef"`
}

// A ReferenceSource is a field of another object.
//
// +kubebuilder:validation:ExactlyOneOf=name;nameFieldPath;selector
type ReferenceSource struct {
	// resource is the API name of the kind of the referenced object, plural and in lower case, for example configmaps.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Resource string `json:"resource"`

	// name of the referenced object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// nameFieldPath, instead of name, is the field of this object with the name of the referenced one: metadata.name, or a
	// field in spec, which an earlier reference may have filled.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	NameFieldPath string `json:"nameFieldPath,omitempty"`

	// selector, instead of name, finds the referenced object by its labels: it must be the only one that has them in the
	// namespace. It is found in the namespace of this object only, or among cluster-scoped objects. Secrets are not found.
	// +optional
	Selector *ReferenceSelector `json:"selector,omitempty"`

	// fieldPath is the field of the referenced object that the value is taken from, with the same syntax as fromFieldPath.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	FieldPath string `json:"fieldPath"`

	// group is the API group of the resource. Absent means the core group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group *string `json:"group,omitempty"`

	// version of the API group in which the referenced object is read. Absent means the API server's preferred version.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Version *string `json:"version,omitempty"`

	// namespace of the referenced object. Absent means the namespace of this object.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace *string `json:"namespace,omitempty"`
}

// A ReferenceSelector finds an object by its labels.
type ReferenceSelector struct {
	// matchLabels are the labels of the object.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +required
	MatchLabels map[string]string `json:"matchLabels"`
}

// ReferencePolicy says how a reference is resolved.
type ReferencePolicy struct {
	// resolve is Once (the field is filled if it has no value; to have it filled again, delete the value) or Always (the
	// field follows the referenced value, and existing values are overwritten).
	// +kubebuilder:default=Once
	// +optional
	Resolve ResolvePolicy `json:"resolve,omitempty"`

	// resolution is Required (if the object or field is missing, this reference and all later ones fail) or Optional (the
	// reference is skipped until its field exists). Other failures fail an optional reference, too.
	// +kubebuilder:default=Required
	// +optional
	Resolution ResolutionPolicy `json:"resolution,omitempty"`
}

// ResolvePolicy says when a value is taken.
//
// +kubebuilder:validation:Enum=Once;Always
type ResolvePolicy string

const (
	// ResolveOnce fills a field that has no value.
	ResolveOnce ResolvePolicy = "Once"

	// ResolveAlways makes a field follow the referenced value.
	ResolveAlways ResolvePolicy = "Always"
)

// ResolutionPolicy says what happens if a source is missing.
//
// +kubebuilder:validation:Enum=Required;Optional
type ResolutionPolicy string

const (
	// ResolutionRequired fails.
	ResolutionRequired ResolutionPolicy = "Required"

	// ResolutionOptional leaves the field as it is.
	ResolutionOptional ResolutionPolicy = "Optional"
)

// FollowsSource reports whether the field follows the referenced value.
func (r *GenericReference) FollowsSource() bool {
	return r.Policy != nil && r.Policy.Resolve == ResolveAlways
}

// IsDependency reports whether the reference fills no field, and only waits for another object.
func (r *GenericReference) IsDependency() bool { return r.ToFieldPath == "" }

// IsOptional reports whether the reference may stay unresolved.
func (r *GenericReference) IsOptional() bool {
	return r.Policy != nil && r.Policy.Resolution == ResolutionOptional
}

// Source returns the one source field of a reference without variables.
func (r *GenericReference) Source() ReferenceSource {
	return ReferenceSource{
		Resource: r.Resource, Name: r.Name, NameFieldPath: r.NameFieldPath, Selector: r.Selector, FieldPath: r.FromFieldPath,
		Group: r.Group, Version: r.Version, Namespace: r.Namespace,
	}
}
