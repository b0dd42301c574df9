// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterImportStatus is the observed state of a ClusterImport.
type ClusterImportStatus struct {
	// observedGeneration is the generation of the spec that the status is about. It is -1 before the first reconcile.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions report the progress of the import. Ready sums them up.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observed is the cluster's state in the cloud.
	// +optional
	Observed *ObservedCluster `json:"observed,omitempty"`

	// lossy lists, field by field, what Cluster API's objects cannot express, and what the installed provider does not
	// observe. Such a field is omitted, or has the value that the entry names, and never silently a default.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Lossy []LossyField `json:"lossy,omitempty"`

	// references names everything that the import created.
	// +kubebuilder:validation:MaxItems=512
	// +listType=atomic
	// +optional
	References []ImportReference `json:"references,omitempty"`

	// kubeconfig is the state of the Secret with the kubeconfig.
	// +optional
	Kubeconfig *ImportKubeconfigStatus `json:"kubeconfig,omitempty"`
}

// ObservedCluster is the state of a cluster in the cloud.
type ObservedCluster struct {
	// cloud is EKS, AKS or GKE.
	// +optional
	Cloud ImportCloud `json:"cloud,omitempty"`

	// id of the cluster in the cloud: the ARN, the Azure resource ID, or the project, location and name.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ID string `json:"id,omitempty"`

	// creationTime is when the cluster was created: as EKS says, or with its namespace kube-system. One that was created
	// at another time is another cluster, also with the same ID, and is not reflected.
	// +optional
	CreationTime *metav1.Time `json:"creationTime,omitempty"`

	// region or location of the cluster.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Region string `json:"region,omitempty"`

	// version of Kubernetes that the control plane runs.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Version string `json:"version,omitempty"`

	// endpoint is the host and port of the API server.
	// +kubebuilder:validation:MaxLength=300
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// nodePools is the number of pools shown and the number known, for example 3/3.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	NodePools string `json:"nodePools,omitempty"`

	// otherCapacity names capacity that belongs to no pool: Fargate, EKSAutoMode, GKEAutopilot, Karpenter.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	OtherCapacity []string `json:"otherCapacity,omitempty"`
}

// LossyField is a field of a cloud's object that Cluster API's object cannot express.
type LossyField struct {
	// kind of Cluster API's object.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// name of Cluster API's object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// field of Cluster API's object, for example spec.amiType.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Field string `json:"field"`

	// observed is the value in the cloud.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Observed string `json:"observed,omitempty"`

	// reflected is the value in Cluster API's object. Absent means that the field was omitted.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reflected string `json:"reflected,omitempty"`

	// reason says why.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ImportReference names an object that an import created.
type ImportReference struct {
	// apiVersion of the object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	APIVersion string `json:"apiVersion"`

	// kind of the object.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// namespace of the object. Absent for cluster-scoped objects.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// ImportKubeconfigStatus is the state of the Secret with the kubeconfig of an imported cluster.
type ImportKubeconfigStatus struct {
	// secretName is the name of the Secret, in the namespace of the ClusterImport.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// expirationTime is when the token expires, if known.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}
