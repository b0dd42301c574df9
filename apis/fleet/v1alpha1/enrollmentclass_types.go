// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An EnrollmentClass configures what Masthead does in the workload clusters enrolled with it. A cluster names its class
// in the value of the label masthead.dev/enroll; the value "true" names the class "default".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=enrollclass,categories=masthead
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.spec.agent.mode`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.agent.defaultTargetNamespace`
// +kubebuilder:printcolumn:name="Match",type=boolean,JSONPath=`.spec.agent.matchNamespaces`,priority=1
// +kubebuilder:printcolumn:name="Applications",type=string,JSONPath=`.spec.applications.mode`,priority=1
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.enrolledClusters`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maxClusters`
// +kubebuilder:printcolumn:name="Connected",type=integer,JSONPath=`.status.connectedClusters`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'true' && self.metadata.name != 'false'",message="an EnrollmentClass cannot be named \"true\" or \"false\": these values of the label masthead.dev/enroll have a meaning of their own"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of an EnrollmentClass is at most 63 characters long, because it is used as a label value"
type EnrollmentClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired behaviour in the clusters of this class.
	// +required
	Spec EnrollmentClassSpec `json:"spec"`

	// status is the observed state of the class and its clusters.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status EnrollmentClassStatus `json:"status,omitempty"`
}

// EnrollmentClassSpec configures what Masthead does in the clusters of a class, one field for each function.
type EnrollmentClassSpec struct {
	// allowedNamespaces are the namespaces of the hub whose Clusters and Secrets may be enrolled with this class. Users
	// who can write these there can then create claims in the namespaces that the class leads to. Absent means no
	// namespace; an empty object, allowedNamespaces: {}, means every namespace. Clusters of a namespace that is no
	// longer allowed are disconnected.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`

	// maxClusters is the maximum number of clusters of the class; absent means no limit. Every enrolled object of an
	// allowed namespace counts, connected or not. Further clusters wait, with the reason ClassFull, until a place is
	// free. When the limit is lowered, the clusters with the youngest enrolled objects are disconnected after the grace
	// period.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxClusters *int32 `json:"maxClusters,omitempty"`

	// agent configures how claims are synchronised between a cluster of this class and the hub.
	// +required
	Agent AgentSpec `json:"agent"`

	// applications configures Applications in a cluster of this class.
	// +kubebuilder:default={}
	// +optional
	Applications ApplicationsSpec `json:"applications,omitempty"`

	// references configures generic references (spec.references) in a cluster of this class.
	// +kubebuilder:default={}
	// +optional
	References ReferencesSpec `json:"references,omitempty"`
}

// AllowedNamespaces selects namespaces of the hub, by name or by label. The fields and their meaning are those of the
// identities of Cluster API's providers. With neither field, it selects every namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || (has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0) || (has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)",message="a selector must select something: use {} for every namespace"
type AllowedNamespaces struct {
	// list names namespaces.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label: lower case letters, digits and \"-\", beginning and ending with a letter or digit"
	// +listType=set
	// +optional
	List []string `json:"list,omitempty"`

	// selector selects namespaces by their labels. Users who can label a namespace can then have it allowed. A namespace
	// is allowed if the list names it or the selector selects it.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// AgentMode says what the agent does.
//
// +kubebuilder:validation:Enum=ReadWrite;Disabled
type AgentMode string

const (
	// AgentModeReadWrite installs the published claim kinds in the cluster, and synchronises claims to the hub and their
	// status and connection Secrets back.
	AgentModeReadWrite AgentMode = "ReadWrite"

	// AgentModeDisabled does nothing in the cluster, except to remove Masthead's finalizer from its claims. Existing
	// objects in the hub are unchanged.
	AgentModeDisabled AgentMode = "Disabled"
)

// DiscoveryMode says what users of a workload cluster see of the hub's APIs.
//
// +kubebuilder:validation:Enum=Full;DefinitionsOnly;None
type DiscoveryMode string

const (
	// DiscoveryModeFull shows definitions and Compositions.
	DiscoveryModeFull DiscoveryMode = "Full"

	// DiscoveryModeDefinitionsOnly shows definitions, but no Compositions, which reveal how infrastructure is built.
	DiscoveryModeDefinitionsOnly DiscoveryMode = "DefinitionsOnly"

	// DiscoveryModeNone shows only the claim kinds themselves.
	DiscoveryModeNone DiscoveryMode = "None"
)

// ReferencesMode says whether generic references are resolved.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type ReferencesMode string

const (
	// ReferencesModeEnabled resolves the references of every object whose kind declares spec.references.
	ReferencesModeEnabled ReferencesMode = "Enabled"

	// ReferencesModeDisabled resolves none. Filled fields stay.
	ReferencesModeDisabled ReferencesMode = "Disabled"
)

// ReferencesSpec configures generic references in the clusters of a class, and what may be referenced there.
type ReferencesSpec struct {
	// mode is Enabled (the references of every object whose kind declares spec.references are resolved) or Disabled (none
	// are; filled fields stay). Claims whose required references are unresolved are not pushed to the hub in either mode.
	// +kubebuilder:default=Disabled
	// +optional
	Mode ReferencesMode `json:"mode,omitempty"`

	// clusterScoped are the cluster-scoped resources that namespaced objects may reference. Users who can create such an
	// object can then read any object of these resources. Absent means none.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	ClusterScoped []ReferencedResource `json:"clusterScoped,omitempty"`

	// secrets are those that cluster-scoped objects may reference. Absent means none. Namespaced objects may reference the
	// Secrets of their namespace.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Secrets []ReferencedSecret `json:"secrets,omitempty"`

	// secretFields are fields that may be filled from Secrets, besides those that the author of their kind has marked with
	// format: password. Users who can read the objects can then read the values.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	SecretFields []SecretField `json:"secretFields,omitempty"`
}

// ReferencedResource is an API resource.
type ReferencedResource struct {
	// group is the API group of the resource; absent for the core group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// resource is the plural in lower case, for example nodes, or * for all of the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Resource string `json:"resource"`
}

// ReferencedSecret names a Secret.
type ReferencedSecret struct {
	// namespace of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// name of the Secret, or * for all of the namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SecretField is a field of a kind.
type SecretField struct {
	// group is the API group of the kind; absent for the core group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// kind that has the field.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// fieldPath of the field, for example spec.users[*].password.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	FieldPath string `json:"fieldPath"`
}

// DeletionPolicy says what happens to a claim's object in the hub when the claim is deleted.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete deletes the hub's object, and with it what Crossplane provisioned.
	DeletionPolicyDelete DeletionPolicy = "Delete"

	// DeletionPolicyOrphan keeps the hub's object and what Crossplane provisioned. The object no longer names a source,
	// except as its former one.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// OrphanPolicy says whether claims may ask for DeletionPolicyOrphan.
//
// +kubebuilder:validation:Enum=Allowed;Forbidden
type OrphanPolicy string

const (
	// OrphanPolicyAllowed orphans the object of a claim that asks for it.
	OrphanPolicyAllowed OrphanPolicy = "Allowed"

	// OrphanPolicyForbidden does not delete a claim that asks for it until it no longer does.
	OrphanPolicyForbidden OrphanPolicy = "Forbidden"
)

// RecreatePolicy says what happens when a claim's object in the hub is deleted by anyone but Masthead.
//
// +kubebuilder:validation:Enum=Never;Always
type RecreatePolicy string

const (
	// RecreatePolicyNever does not recreate the object. The claim reports the deletion, and its owner decides.
	RecreatePolicyNever RecreatePolicy = "Never"

	// RecreatePolicyAlways creates another object at once, for which Crossplane provisions new infrastructure.
	RecreatePolicyAlways RecreatePolicy = "Always"
)

// AgentSpec configures how claims are synchronised between the clusters of a class and the hub.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'ReadWrite' || has(self.defaultTargetNamespace) != (has(self.matchNamespaces) && self.matchNamespaces)",message="exactly one of defaultTargetNamespace and matchNamespaces: true is required when mode is ReadWrite"
type AgentSpec struct {
	// mode is ReadWrite (the published claim kinds are installed in the cluster, claims are pushed to the hub, and their
	// status and connection Secrets are copied back) or Disabled (nothing is done in the cluster, except that Masthead's
	// finalizer is removed from its claims; existing objects in the hub are unchanged).
	// +kubebuilder:default=ReadWrite
	// +optional
	Mode AgentMode `json:"mode,omitempty"`

	// apiGroups are the API groups whose claim kinds are offered to the cluster. Empty means every claim kind that the hub
	// publishes.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="an API group is a DNS subdomain: lower case letters, digits, \"-\" and \".\", for example database.acmeco.org"
	// +listType=set
	// +optional
	APIGroups []string `json:"apiGroups,omitempty"`

	// discovery says what the cluster's users see of the hub's APIs, in read-only copies: Full (the
	// CompositeResourceDefinitions and Compositions of the offered API groups), DefinitionsOnly (no Compositions, which
	// reveal how infrastructure is built) or None.
	// +kubebuilder:default=Full
	// +optional
	Discovery DiscoveryMode `json:"discovery,omitempty"`

	// defaultTargetNamespace is the target namespace in the hub for the claims of a cluster, unless the annotation
	// agent.crossplane.io/target-namespace on their own namespace names another one. It must exist. Use it or
	// matchNamespaces.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label: lower case letters, digits and \"-\", beginning and ending with a letter or digit"
	// +optional
	DefaultTargetNamespace string `json:"defaultTargetNamespace,omitempty"`

	// matchNamespaces maps each claim to the namespace in the hub with the name of the claim's own, which must exist,
	// unless the annotation agent.crossplane.io/target-namespace on its own names another one. Users who can create a
	// namespace in a cluster of this class can then create claims in the hub's namespace of that name: use it where the
	// platform team assigns namespaces. Use it or defaultTargetNamespace.
	// +kubebuilder:default=false
	// +optional
	MatchNamespaces bool `json:"matchNamespaces,omitempty"`

	// allowedTargetNamespaces are the namespaces of the hub that may be chosen in a cluster of this class: by the
	// annotation agent.crossplane.io/target-namespace or, with matchNamespaces, by the name of a namespace. The class's
	// defaultTargetNamespace is always allowed, and namespaces of the hub's control plane never are. Absent means that
	// claims pushed with the manager's own rights go only where defaultTargetNamespace or matchNamespaces says, and
	// those pushed with another identity wherever it may write. An empty object, allowedTargetNamespaces: {}, means
	// every namespace.
	// +optional
	AllowedTargetNamespaces *AllowedNamespaces `json:"allowedTargetNamespaces,omitempty"`

	// deletionPolicy says what happens to a claim's object in the hub when the claim is deleted: Delete, or Orphan, which
	// keeps it and what Crossplane provisioned. With Delete, a claim that has the annotation
	// agent.masthead.dev/deletion-policy: Orphan is still orphaned; with Orphan, no claim can request deletion.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// orphanPolicy says whether a claim of a class with deletionPolicy: Delete may be orphaned by the annotation
	// agent.masthead.dev/deletion-policy: Orphan: Allowed, or Forbidden. With Forbidden, a deleted claim with this
	// annotation reports InvalidDeletionPolicy, and nothing is deleted until the annotation is changed or removed. An
	// orphaned object stays in the hub, with what Crossplane provisioned, until it is deleted there.
	// +kubebuilder:default=Allowed
	// +optional
	OrphanPolicy OrphanPolicy `json:"orphanPolicy,omitempty"`

	// maxClaims is the maximum number of objects in the hub that come from one cluster of this class; absent means no
	// limit. A claim beyond it reports ClaimLimitReached, and is not pushed until there is room. What orphaned claims
	// left counts until it is deleted or adopted. Objects in namespaces to which the class does not lead do not count:
	// their owners can name any cluster as the source.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxClaims *int32 `json:"maxClaims,omitempty"`

	// maxClaimsPerNamespace is maxClaims for the claims of each namespace of a cluster. Both apply.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxClaimsPerNamespace *int32 `json:"maxClaimsPerNamespace,omitempty"`

	// recreatePolicy says what happens when another client deletes a claim's object in the hub. Never: the claim
	// reports HubObjectDeleted until the object is restored, the claim is deleted, or its owner requests another one by
	// the annotation agent.masthead.dev/recreate. Always: another one is created at once. That is a new database, which
	// is empty while every condition is True.
	// +kubebuilder:default=Never
	// +optional
	RecreatePolicy RecreatePolicy `json:"recreatePolicy,omitempty"`

	// excludedMetadata are labels and annotations that are not propagated between the clusters of this class and the
	// hub, besides those that never are (docs/claims.md, "Metadata that stays where it is"). Each entry is a key, or a
	// domain followed by /*, for every key of that domain and its subdomains. Use it for marks by which tools delete or
	// overwrite objects. Metadata propagated earlier is removed again.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$') || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[*]$')",message="an entry is the key of a label or annotation, for example deploy.acmeco.org/release, or a domain followed by /*, for example deploy.acmeco.org/*"
	// +listType=set
	// +optional
	ExcludedMetadata []string `json:"excludedMetadata,omitempty"`

	// identity is the hub identity used for the claims of a cluster. Absent means the manager's own. The annotation
	// agent.crossplane.io/credentials-secret-name on a namespace of the cluster overrides it for the claims of that
	// namespace.
	// +optional
	Identity *HubIdentity `json:"identity,omitempty"`
}

// HubIdentity is an identity whose rights in the hub are used for claims: to create, change and delete their objects
// there, and to read these and their connection Secrets.
//
// +kubebuilder:validation:XValidation:rule="has(self.serviceAccountRef) != has(self.credentialsSecretName)",message="exactly one of serviceAccountRef and credentialsSecretName is required"
type HubIdentity struct {
	// serviceAccountRef names a ServiceAccount of the hub that Masthead impersonates. Masthead needs the right to do so.
	// Authors of EnrollmentClasses thereby decide which clusters have the rights of which ServiceAccount.
	// +optional
	ServiceAccountRef *ServiceAccountReference `json:"serviceAccountRef,omitempty"`

	// credentialsSecretName names a Secret in the namespace masthead-system of the workload cluster, whose key kubeconfig
	// holds the credentials. Only the token or the client certificate of its current context is used, and only with the
	// hub.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a Secret is a DNS subdomain: lower case letters, digits, \"-\" and \".\""
	// +optional
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`
}

// ServiceAccountReference names a ServiceAccount.
type ServiceAccountReference struct {
	// namespace of the ServiceAccount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label: lower case letters, digits and \"-\", beginning and ending with a letter or digit"
	// +required
	Namespace string `json:"namespace"`

	// name of the ServiceAccount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a ServiceAccount is a DNS subdomain: lower case letters, digits, \"-\" and \".\""
	// +required
	Name string `json:"name"`
}

// EnrollmentClassStatus is the observed state of a class and its clusters.
type EnrollmentClassStatus struct {
	// observedGeneration is the generation of the class that this status was computed for; -1 before there is one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// enrolledClusters is the number of enrolled clusters that name this class.
	// +optional
	EnrolledClusters int32 `json:"enrolledClusters"`

	// connectedClusters is the number of them that are connected, as their ClusterProfiles say.
	// +optional
	ConnectedClusters int32 `json:"connectedClusters"`

	// conditions of the class: Ready (clusters can be enrolled with it), ClustersConnected (Masthead is connected to every
	// cluster that names it) and, only while a user must correct the class, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EnrollmentClassList is a list of EnrollmentClasses.
//
// +kubebuilder:object:root=true
type EnrollmentClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the EnrollmentClasses.
	Items []EnrollmentClass `json:"items"`
}
