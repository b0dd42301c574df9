// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Enrolment: what people write on the object in the hub that stands for a workload cluster.
const (
	// EnrollLabel enrols the cluster that the labelled object stands for. EnrollLabelTrue means the EnrollmentClass
	// DefaultEnrollmentClassName, any other value than EnrollLabelFalse names an EnrollmentClass, and EnrollLabelFalse,
	// an empty value or no label mean that the cluster is not enrolled.
	EnrollLabel = "masthead.dev/enroll"

	// EnrollLabelTrue is the value of EnrollLabel that enrols with the class DefaultEnrollmentClassName.
	EnrollLabelTrue = "true"

	// EnrollLabelFalse is the value of EnrollLabel that says "not enrolled" in words. No EnrollmentClass of this name can
	// be used.
	EnrollLabelFalse = "false"

	// DefaultEnrollmentClassName is the EnrollmentClass that EnrollLabelTrue stands for.
	DefaultEnrollmentClassName = "default"

	// ClusterIdentifierAnnotation gives an enrolled cluster an identifier that outlives it: a replacement cluster that
	// carries the same one takes over the hub objects of the cluster it replaces. Without it, the identifier is the UID
	// of the workload cluster's kube-system namespace. A value that has the form of a UUID is refused, so that nobody can
	// pass a cluster off as one that has no identifier. The name is Crossplane's, and kept for compatibility.
	ClusterIdentifierAnnotation = "agent.crossplane.io/cluster-identifier"
)

// Pairing: what people write on the namespaces of a workload cluster. The names are those of the Crossplane agent's design.
const (
	// TargetNamespaceAnnotation on a namespace of a workload cluster names the namespace of the hub to which the claims in
	// it go, instead of the one that the EnrollmentClass says. The class limits which it can be.
	TargetNamespaceAnnotation = "agent.crossplane.io/target-namespace"

	// CredentialsSecretNameAnnotation on a namespace of a workload cluster names a Secret in that namespace with credentials
	// for the hub, with which the claims of the namespace are carried there, instead of those that the EnrollmentClass
	// says. The Secret has a kubeconfig under the key CredentialsSecretKey.
	CredentialsSecretNameAnnotation = "agent.crossplane.io/credentials-secret-name"

	// OnTargetChangeAnnotation on a claim in a workload cluster, or on its namespace, says what happens when the claim's object
	// is in another namespace of the hub than the one to which the claim would go now. With OnTargetChangeRecreate it is
	// deleted or released, as for a deletion of the claim, and created anew where it would go. With OnTargetChangeStay, or any
	// other value, or none, it stays where it is and is not synchronised.
	OnTargetChangeAnnotation = "agent.masthead.dev/on-target-change"

	// OnTargetChangeRecreate and OnTargetChangeStay are the values of OnTargetChangeAnnotation.
	OnTargetChangeRecreate = "Recreate"
	OnTargetChangeStay     = "Stay"

	// CredentialsSecretKey is the key of a kubeconfig in a Secret with credentials for the hub.
	CredentialsSecretKey = "kubeconfig"

	// AgentNamespace is the namespace of a workload cluster that holds what the cluster's administrator keeps for Masthead.
	AgentNamespace = "masthead-system"
)

// Requirements: what Masthead writes on claims. The annotations' names are those of the Crossplane agent's design, and
// kept for compatibility.
const (
	// SourceUIDAnnotation is set on a claim in the hub and holds the identifier of the workload cluster that it comes
	// from. A claim that bears another identifier, or none, is never written.
	SourceUIDAnnotation = "agent.crossplane.io/source-uid"

	// SourceNamespaceAnnotation is set on a claim in the hub and holds the namespace that it comes from in its workload
	// cluster.
	SourceNamespaceAnnotation = "agent.crossplane.io/source-namespace"

	// SourceNamespaceUIDAnnotation is set on a claim in the hub and holds the UID of the namespace that it comes from. A
	// namespace of the same cluster that has the same name and another UID is another one, and has no claim to the object.
	SourceNamespaceUIDAnnotation = "agent.crossplane.io/source-namespace-uid"

	// SourceClusterUIDAnnotation is set on a claim in the hub and holds the UID of the namespace kube-system of the workload
	// cluster that it comes from. UIDs of namespaces are only compared within one cluster: those of a cluster that replaces
	// another one under the same identifier are all different.
	SourceClusterUIDAnnotation = "agent.masthead.dev/source-cluster-uid"

	// CreatedByAnnotation is set on a claim in the hub and names the identity whose rights it was created with: manager,
	// serviceaccount/<namespace>/<name> in the hub, or secret/<namespace>/<name> in the workload cluster.
	CreatedByAnnotation = "agent.masthead.dev/created-by"

	// CreatedAtAnnotation is set on a claim in the hub when it is created, and says when that was by Masthead's clock
	// (RFC 3339, UTC). The next change of the claim removes it. An object that bears a recent one, and whose claim is gone
	// without anybody having seen it go, was created for a claim that was deleted in that very instant.
	CreatedAtAnnotation = "agent.masthead.dev/created-at"

	// RequirementFinalizer keeps a claim in a workload cluster until its counterpart in the hub is gone. The finalizer that is
	// written is this name, "-" and the identity of the hub. Without an identity, it was written by a version that had none.
	RequirementFinalizer = "agent.masthead.dev/requirement"

	// HubObjectAnnotation is set on a claim in a workload cluster and says which object of the hub is the claim's:
	// <namespace in the hub>/<UID of the object>/<UID of the claim>. By the last part, the annotation of a claim that was copied
	// counts for nothing. It is how a claim whose object was deleted in the hub is told from one that never had one. It is
	// set before the object is created. The UID of the object is empty while Crossplane's conditions in the status of the
	// claim say that there was one.
	HubObjectAnnotation = "agent.masthead.dev/hub-object"

	// RecreateAnnotation is written by users on a claim whose object was deleted in the hub, and asks for another one. Its
	// value is the UID of the object that was deleted, or that of the claim if it does not record the other one, so that it
	// is no consent to the next loss.
	RecreateAnnotation = "agent.masthead.dev/recreate"

	// DeliverLabel is written by the authors of Compositions on a composed Secret, or by whoever administers the hub on any
	// Secret there. With any other value than "true", the Secret is not brought to a workload cluster.
	DeliverLabel = "agent.masthead.dev/deliver"

	// ConflictAnnotation is set on a claim in a workload cluster whose name is taken in the hub, and names the holder. It is
	// there for definitions that drop conditions which they do not know.
	ConflictAnnotation = "agent.masthead.dev/conflict"

	// DeletionPolicyAnnotation is written by users on a claim in a workload cluster. Its values are those of
	// DeletionPolicy: Orphan keeps the hub's object when the claim is deleted, and Delete is what the class says.
	DeletionPolicyAnnotation = "agent.masthead.dev/deletion-policy"

	// AdoptableByAnnotation is written by whoever administers the hub on an object that names no source, and lets one take it
	// over: <cluster identifier>/<namespace>, or <cluster identifier>/* for any namespace of that cluster. It is removed when
	// that has happened.
	AdoptableByAnnotation = "agent.masthead.dev/adoptable-by"

	// ReleasedFromAnnotation is set on an object of the hub whose claim was deleted with the policy Orphan, and names the
	// source that it had: <cluster identifier>/<namespace>.
	ReleasedFromAnnotation = "agent.masthead.dev/released-from"

	// AdoptAnnotation is written by users on a claim in a workload cluster. With the value "true", the claim takes over an
	// object of the hub that was released by a claim of the same name and source. It gives no access to any other object.
	AdoptAnnotation = "agent.masthead.dev/adopt"

	// PausedAnnotation is written by users on a claim in a workload cluster. With the value PausedAnnotationTrue the claim is
	// paused: nothing is carried to the hub or back, and nothing is deleted for it. It is Crossplane's annotation, and does
	// not travel: in the hub it pauses Crossplane, if somebody there writes it.
	PausedAnnotation = "crossplane.io/paused"

	// PausedAnnotationTrue is the value of PausedAnnotation that pauses.
	PausedAnnotationTrue = "true"

	// ReconcileRequestedAtAnnotation is written by users on a claim in a workload cluster. A value that is another one than
	// before has the claim reconciled now, whatever it waits for. It can be anything, as the time at which it is written.
	ReconcileRequestedAtAnnotation = "agent.masthead.dev/reconcile-requested-at"
)

// Ownership: how Masthead recognises what it wrote itself.
const (
	// ClusterNameAnnotation is set on what Masthead publishes in the hub about one enrolled cluster, and holds the name of the
	// cluster. The name of the object alone does not say it: a long one is shortened.
	ClusterNameAnnotation = "fleet.masthead.dev/cluster"

	// ManagedByLabel is set on objects that Masthead creates in a workload cluster. An object without it is not
	// Masthead's and never overwritten.
	ManagedByLabel = "masthead.dev/managed-by"

	// HubLabel is set on objects that Masthead creates in a workload cluster, and holds the identity of the hub that the
	// object belongs to. An object that names another hub is left alone. On the definition HubMarkerName it names the hub that
	// the workload cluster belongs to.
	HubLabel = "masthead.dev/hub"

	// HubNameAnnotation is set on the definition HubMarkerName, and is the name of the hub for people, as the operator of that
	// hub chose it.
	HubNameAnnotation = "masthead.dev/hub-name"

	// HubPredecessorsAnnotation is set on the definition HubMarkerName and lists, separated by commas and the latest first,
	// the identities of the hubs from which the cluster was taken over. What they left in the cluster belongs to its hub.
	HubPredecessorsAnnotation = "masthead.dev/hub-predecessors"

	// HubMarkerName is the name of the CustomResourceDefinition in a workload cluster that says which hub the cluster belongs
	// to. It serves no version, so that there are no objects of it.
	HubMarkerName = "hubs.masthead.dev"

	// TakeOverFromAnnotation is written by people on an enrolled object, and holds the identity of another hub. It consents to
	// taking the cluster over from that hub.
	TakeOverFromAnnotation = "masthead.dev/take-over-from"

	// MirroredAnnotation is set on read-only copies of the hub's objects in a workload cluster. It holds a hash of what was
	// copied, and the generation that the copy had then.
	MirroredAnnotation = "masthead.dev/mirrored"

	// FieldManager is the server-side apply field manager of what Masthead writes on its own behalf, and the name under
	// which it presents itself as a cluster manager in the cluster inventory.
	FieldManager = "masthead"

	// LateInitFieldManager is the field manager of what was filled in late in claims; a hub adds "-" and its identity. The
	// watch of a workload cluster keeps what these manage.
	LateInitFieldManager = "masthead-late-init"

	// ReferencesFieldManager is the field manager of what references filled in.
	ReferencesFieldManager = "masthead-references"
)
