// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Role is what a thing is for the question, and so how it is read.
type Role string

// Roles.
const (
	// RoleClaim is a claim, or a namespaced composite, in a workload cluster.
	RoleClaim Role = "Claim"

	// RoleHub is what Crossplane looks after in the hub: the object of a claim, composites and managed resources.
	RoleHub Role = "Hub"

	// RoleHolder is the object in the hub that has the name which a claim asks for.
	RoleHolder Role = "Holder"

	// RoleCluster is the ClusterProfile of a workload cluster.
	RoleCluster Role = "Cluster"

	// RoleEnrolled is the object that stands for a workload cluster in the hub: a Cluster or a Secret.
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

	// RoleSource is what a reference takes a value from.
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

// String is how people call the object.
func (r Ref) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return r.Kind + " " + name
}

// Absence is why there is no object.
type Absence string

// Absences.
const (
	// Present means that there is an object.
	Present Absence = ""

	// NotFound means that there is none.
	NotFound Absence = "NotFound"

	// NotServed means that its kind is not there.
	NotServed Absence = "NotServed"

	// NotLooked means that it could not be looked at.
	NotLooked Absence = "NotLooked"
)

// A Thing is an object that has to do with the question.
type Thing struct {
	Ref  Ref
	Role Role

	// Object is nil if it is absent.
	Object *unstructured.Unstructured

	// Absent says why there is none, and Message more about it.
	Absent  Absence
	Message string

	// Told are findings about it that stand elsewhere, for example a component's entry in its Application.
	Told []Finding

	// Note is shown beside it, whatever its state.
	Note string

	// For narrows what counts: of a ClusterProfile or an EnrollmentClass asked about because of something in the cluster.
	For For

	// Needs are what it depends on, in the order in which people would look.
	Needs []*Thing
}

// For is because of what a cluster or its class is looked at. The zero value means for its own sake.
type For struct {
	// Use is what the class has to allow.
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
	// Fine means that there is nothing to say.
	Fine Severity = iota

	// Unseen means that nobody could look.
	Unseen

	// Waiting means that it passes by itself, as far as anybody knows.
	Waiting

	// Failed means that somebody has to do something.
	Failed

	// Blocked means that nothing behind it can work.
	Blocked
)

// String is the severity for people.
func (s Severity) String() string {
	return [...]string{"OK", "NotLookedAt", "Waiting", "Failed", "Failed"}[s]
}

// A Finding is one thing that is not as it should be.
type Finding struct {
	Severity Severity

	// Reason is one word, Message a sentence.
	Reason, Message string

	// Derived means that it only says that something below is not well.
	Derived bool
}
