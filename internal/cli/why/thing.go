// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Role is the role of a thing in the question, which determines how it is read.
type Role string

// Roles.
const (
	// RoleClaim is a claim, or a namespaced composite, in a workload cluster.
	RoleClaim Role = "Claim"

	// RoleHub is an object of Crossplane's in the hub: the object of a claim, composites and managed resources.
	RoleHub Role = "Hub"

	// RoleHolder is the object in the hub that has the name which a claim requests.
	RoleHolder Role = "Holder"

	// RoleCluster is the ClusterProfile of a workload cluster.
	RoleCluster Role = "Cluster"

	// RoleEnrolled is the object that represents a workload cluster in the hub: a Cluster, a Secret or a ClusterProfile.
	RoleEnrolled Role = "Enrolled"

	// RoleKubeconfig is the Secret with the kubeconfig of a Cluster.
	RoleKubeconfig Role = "Kubeconfig"

	// RoleClass is an EnrollmentClass.
	RoleClass Role = "Class"

	// RolePublisher is what publishes a claim kind: a CompositeResourceDefinition.
	RolePublisher Role = "Publisher"

	// RoleNamespace is a namespace of the hub to which claims go.
	RoleNamespace Role = "Namespace"

	// RoleApplication is an Application.
	RoleApplication Role = "Application"

	// RoleImport is a ClusterImport.
	RoleImport Role = "Import"

	// RoleSource is the source of a reference.
	RoleSource Role = "Source"

	// RoleObject is any other object.
	RoleObject Role = "Object"
)

// A Ref names an object.
type Ref struct {
	// Where is the hub or the name of a cluster.
	Where string `json:"where"`

	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the kind, the namespace if there is one, and the name.
func (r Ref) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return r.Kind + " " + name
}

// Absence says why there is no object.
type Absence string

// Absences.
const (
	// Present means that the object exists.
	Present Absence = ""

	// NotFound means that the object does not exist.
	NotFound Absence = "NotFound"

	// NotServed means that its kind is not served.
	NotServed Absence = "NotServed"

	// NotLooked means that it could not be read.
	NotLooked Absence = "NotLooked"
)

// A Thing is an object related to the question.
type Thing struct {
	Ref  Ref
	Role Role

	// Object is nil if absent.
	Object *unstructured.Unstructured

	// Absent says why there is no object, and Message gives details.
	Absent  Absence
	Message string

	// Reported are findings about it from elsewhere, for example a component's entry in its Application.
	Reported []Finding

	// Note is shown beside it, regardless of its state.
	Note string

	// For narrows what counts of a ClusterProfile or an EnrollmentClass to what concerns an object in the cluster.
	For For

	// Needs are its dependencies, in the order in which a user would check them.
	Needs []*Thing
}

// For is the reason to examine a cluster or its class. The zero value means for its own sake.
type For struct {
	// Use is the part that the class must allow.
	Use Use

	// Definition is the name of the CustomResourceDefinition of the object's kind.
	Definition string
}

// Use is a part of an EnrollmentClass.
type Use string

// Uses.
const (
	UseClaims       Use = "claims"
	UseApplications Use = "applications"
	UseReferences   Use = "references"
)

// Severity is how bad a finding is.
type Severity int

// Severities, from good to bad.
const (
	// Fine means that there is no problem.
	Fine Severity = iota

	// Unseen means that it could not be read.
	Unseen

	// Waiting means that it probably resolves by itself.
	Waiting

	// Failed means that a user must act.
	Failed

	// Blocked means that nothing behind it can work.
	Blocked
)

// String returns the severity for users.
func (s Severity) String() string {
	return [...]string{"OK", "NotLookedAt", "Waiting", "Failed", "Failed"}[s]
}

// A Finding is one problem.
type Finding struct {
	Severity Severity

	// Reason is one word, Message a sentence.
	Reason, Message string

	// Derived means that it only reports a problem below.
	Derived bool
}
