// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Enrolment: what users set on the object in the hub that represents a workload cluster.
const (
	// EnrollLabel enrols the cluster that the labelled object represents. EnrollLabelTrue means the EnrollmentClass
	// DefaultEnrollmentClassName, any other value than EnrollLabelFalse names an EnrollmentClass, and EnrollLabelFalse, an
	// empty value or no label mean that the cluster is not enrolled. YAML's other words for true and false mean the same.
	EnrollLabel = "masthead.dev/enroll"

	// EnrollLabelTrue is the value of EnrollLabel that enrols with the class DefaultEnrollmentClassName.
	EnrollLabelTrue = "true"

	// EnrollLabelFalse is the value of EnrollLabel that means "not enrolled". No EnrollmentClass of this name can be used.
	EnrollLabelFalse = "false"

	// DefaultEnrollmentClassName is the EnrollmentClass that EnrollLabelTrue stands for.
	DefaultEnrollmentClassName = "default"

	// ClusterIdentifierAnnotation gives an enrolled cluster an identifier that outlives it: a replacement cluster with the
	// same identifier takes over the hub objects of the cluster it replaces. Without it, the identifier is the UID of the
	// workload cluster's kube-system namespace. A UUID is refused as the value, so that no cluster can pass as one that
	// has no identifier. The name is Crossplane's, and kept for compatibility.
	ClusterIdentifierAnnotation = "agent.crossplane.io/cluster-identifier"
)

// Pairing: what users set on the namespaces of a workload cluster. The names are those of the Crossplane agent's
// design.
const (
	// TargetNamespaceAnnotation on a namespace of a workload cluster names the target namespace in the hub for its claims,
	// overriding the EnrollmentClass. The class limits the choice.
	TargetNamespaceAnnotation = "agent.crossplane.io/target-namespace"

	// CredentialsSecretNameAnnotation on a namespace of a workload cluster names a Secret in that namespace with hub
	// credentials for the namespace's claims, overriding the EnrollmentClass. The Secret has a kubeconfig under the key
	// CredentialsSecretKey.
	CredentialsSecretNameAnnotation = "agent.crossplane.io/credentials-secret-name"

	// OnTargetChangeAnnotation on a claim in a workload cluster, or on its namespace, says what happens when the claim's
	// object is in another namespace of the hub than the claim's current target. With OnTargetChangeRecreate it is deleted
	// or released, as for a deletion of the claim, and created again in the target. With OnTargetChangeStay, any other
	// value, or none, it stays where it is and is not synchronised.
	OnTargetChangeAnnotation = "agent.masthead.dev/on-target-change"

	// OnTargetChangeRecreate and OnTargetChangeStay are the values of OnTargetChangeAnnotation.
	OnTargetChangeRecreate = "Recreate"
	OnTargetChangeStay     = "Stay"

	// CredentialsSecretKey is the key of a kubeconfig in a Secret with credentials for the hub.
	CredentialsSecretKey = "kubeconfig"

	// AgentNamespace is the namespace of a workload cluster for objects that its administrator provides to Masthead.
	AgentNamespace = "masthead-system"
)

// Requirements: what Masthead sets on claims. The annotations' names are those of the Crossplane agent's design, kept
// for compatibility.
const (
	// SourceUIDAnnotation is set on a claim in the hub to the identifier of its workload cluster. A claim with another
	// identifier, or none, is never written.
	SourceUIDAnnotation = "agent.crossplane.io/source-uid"

	// SourceNamespaceAnnotation is set on a claim in the hub to its namespace in its workload cluster.
	SourceNamespaceAnnotation = "agent.crossplane.io/source-namespace"

	// SourceNamespaceUIDAnnotation is set on a claim in the hub to the UID of its source namespace. A namespace of the
	// same cluster with the same name and another UID is a different one, and has no claim to the object.
	SourceNamespaceUIDAnnotation = "agent.crossplane.io/source-namespace-uid"

	// SourceClusterUIDAnnotation is set on a claim in the hub to the UID of the namespace kube-system of its workload
	// cluster. UIDs of namespaces are only compared within one cluster: a cluster that replaces another one under the same
	// identifier has different UIDs.
	SourceClusterUIDAnnotation = "agent.masthead.dev/source-cluster-uid"

	// SourceClaimUIDAnnotation is set on a claim in the hub, from its creation on, to the UID of the claim in its workload
	// cluster. An object elsewhere than the claim's target is the claim's only if it has this UID: names can be guessed,
	// and objects made in advance; a UID cannot.
	SourceClaimUIDAnnotation = "agent.masthead.dev/source-claim-uid"

	// CreatedByAnnotation is set on a claim in the hub and names the identity that created it: manager,
	// serviceaccount/<namespace>/<name> in the hub, or secret/<namespace>/<name> in the workload cluster.
	CreatedByAnnotation = "agent.masthead.dev/created-by"

	// RequirementFinalizer keeps a claim in a workload cluster until its counterpart in the hub is gone. The finalizer is
	// this name, "-" and the identity of the hub. Versions before hub identities wrote it without one.
	RequirementFinalizer = "agent.masthead.dev/requirement"

	// HubObjectAnnotation is set on a claim in a workload cluster and identifies the claim's object in the hub: <namespace
	// in the hub>/<UID of the object>/<UID of the claim>. The last part invalidates the annotation on a copied claim. It
	// distinguishes a claim whose object was deleted in the hub from one that never had one. It is set before the object
	// is created. The UID of the object is empty while Crossplane's conditions in the status of the claim say that there
	// was one.
	HubObjectAnnotation = "agent.masthead.dev/hub-object"

	// RecreateAnnotation is set by users on a claim whose object was deleted in the hub, to request another one. Its value
	// is the UID of the deleted object, or that of the claim if it does not record one, so that it does not consent to the
	// next loss.
	RecreateAnnotation = "agent.masthead.dev/recreate"

	// DeliverLabel is set by the authors of Compositions on a composed Secret, or by hub administrators on any Secret
	// there. With any other value than "true", the Secret is not copied to a workload cluster.
	DeliverLabel = "agent.masthead.dev/deliver"

	// PublishLabel is set by hub administrators on a CompositeResourceDefinition, or on another object of a kind that is
	// copied to workload clusters. With any other value than "true", its claim kind is not offered to any cluster, and
	// neither it nor its Compositions are copied.
	PublishLabel = "agent.masthead.dev/publish"

	// ConflictAnnotation is set on a claim in a workload cluster whose name is taken in the hub, and names the holder. It
	// is for definitions that prune unknown conditions.
	ConflictAnnotation = "agent.masthead.dev/conflict"

	// DeletionPolicyAnnotation is set by users on a claim in a workload cluster. Its values are those of DeletionPolicy:
	// Orphan keeps the hub's object when the claim is deleted, and Delete means the class's policy.
	DeletionPolicyAnnotation = "agent.masthead.dev/deletion-policy"

	// AdoptableByAnnotation is set by hub administrators on an object that names no source, and permits one to adopt it:
	// <cluster identifier>/<namespace>, or <cluster identifier>/* for any namespace of that cluster. It is removed after
	// the adoption.
	AdoptableByAnnotation = "agent.masthead.dev/adoptable-by"

	// ReleasedFromAnnotation is set on an object of the hub whose claim was deleted with the policy Orphan, and names its
	// former source: <cluster identifier>/<namespace>.
	ReleasedFromAnnotation = "agent.masthead.dev/released-from"

	// AdoptAnnotation is set by users on a claim in a workload cluster. With the value "true", the claim adopts an object
	// of the hub that was released by a claim of the same name and source. It gives no access to any other object.
	AdoptAnnotation = "agent.masthead.dev/adopt"

	// PausedAnnotation is set by users on a claim in a workload cluster. With the value PausedAnnotationTrue the claim is
	// paused: nothing is synchronised in either direction, and nothing is deleted for it. It is Crossplane's annotation,
	// and is not propagated: in the hub it pauses Crossplane, if a user sets it there.
	PausedAnnotation = "crossplane.io/paused"

	// PausedAnnotationTrue is the value of PausedAnnotation that pauses.
	PausedAnnotationTrue = "true"

	// ReconcileRequestedAtAnnotation is set by users on a claim in a workload cluster. A changed value triggers a
	// reconcile now, regardless of what the claim waits for. Any value will do, for example the current time.
	ReconcileRequestedAtAnnotation = "agent.masthead.dev/reconcile-requested-at"
)

// Ownership: how Masthead recognises its own objects.
const (
	// ClusterNameAnnotation is set on what Masthead publishes in the hub about one enrolled cluster, to the name of the
	// cluster. The object's name is not enough: long names are shortened.
	ClusterNameAnnotation = "fleet.masthead.dev/cluster"

	// ManagedByLabel is set on objects that Masthead creates in a workload cluster. An object without it is not Masthead's
	// and never overwritten.
	ManagedByLabel = "masthead.dev/managed-by"

	// HubLabel is set on objects that Masthead creates in a workload cluster, to the identity of the owning hub. An object
	// that names another hub is not touched. On the definition HubMarkerName it names the hub that the workload cluster
	// belongs to.
	HubLabel = "masthead.dev/hub"

	// HubNameAnnotation is set on the definition HubMarkerName, to the display name of the hub that its operator chose.
	HubNameAnnotation = "masthead.dev/hub-name"

	// HubPredecessorsAnnotation is set on the definition HubMarkerName and lists, separated by commas and the latest
	// first, the identities of the hubs from which the cluster was taken over. What they left in the cluster belongs to
	// its current hub.
	HubPredecessorsAnnotation = "masthead.dev/hub-predecessors"

	// HubMarkerName is the name of the CustomResourceDefinition in a workload cluster that names the hub the cluster
	// belongs to. It serves no version, so it has no objects.
	HubMarkerName = "hubs.masthead.dev"

	// TakeOverFromAnnotation is set by users on an enrolled object, to the identity of another hub. It consents to taking
	// the cluster over from that hub.
	TakeOverFromAnnotation = "masthead.dev/take-over-from"

	// MirroredAnnotation is set on read-only copies of the hub's objects in a workload cluster. It holds a hash of the
	// copied content, and the copy's generation at that time.
	MirroredAnnotation = "masthead.dev/mirrored"

	// FieldManager is the server-side apply field manager for Masthead's own fields, and the name of Masthead as a cluster
	// manager in the cluster inventory.
	FieldManager = "masthead"

	// LateInitFieldManager is the field manager of late-initialized fields in claims; a hub adds "-" and its identity. The
	// watch of a workload cluster keeps what these manage.
	LateInitFieldManager = "masthead-late-init"

	// ReferencesFieldManager is the field manager of fields filled by references.
	ReferencesFieldManager = "masthead-references"
)
