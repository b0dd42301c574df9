// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of the condition Connected of a ClusterProfile. They are also those of events on the enrolled object, and values
// of the label "reason" of the probe metrics.
const (
	// ReasonConnected means: the cluster is engaged and its last probe succeeded.
	ReasonConnected = "Connected"
	// ReasonConnecting means: a connection is being made.
	ReasonConnecting = "Connecting"
	// ReasonDialError means: the API server's address cannot be resolved or reached, or does not answer in time.
	ReasonDialError = "DialError"
	// ReasonEndpointDenied means: the API server's name resolves to a refused address, or the operator denies its address.
	ReasonEndpointDenied = "EndpointDenied"
	// ReasonTLSError means: the server has no certificate for its name signed by the kubeconfig's authority, or does not
	// speak TLS.
	ReasonTLSError = "TLSError"
	// ReasonUnauthorized means: the API server rejects the credentials (401), and the Secret has no newer ones.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden means: the credentials are valid, but may not read the namespace kube-system, which identifies
	// the cluster, or may not read or write the marker, which names its hub.
	ReasonForbidden = "Forbidden"
	// ReasonBadKubeconfig means: the kubeconfig cannot be used or contains something that is refused.
	ReasonBadKubeconfig = "BadKubeconfig"
	// ReasonNoCredentials means: the Secret does not exist, or the plugin fails.
	ReasonNoCredentials = "NoCredentials"
	// ReasonNotReady means: the source reports that the cluster is not ready to be connected.
	ReasonNotReady = "NotReady"
	// ReasonPaused means: the enrolled object is paused.
	ReasonPaused = "Paused"
	// ReasonDuplicateCluster means: another enrolment holds the same cluster, or the same cluster identifier.
	ReasonDuplicateCluster = "DuplicateCluster"
	// ReasonBadIdentifier means: the annotation for the cluster identifier has the form of a UUID, which is reserved
	// for cluster UIDs.
	ReasonBadIdentifier = "BadIdentifier"
	// ReasonClusterIdentityChanged means: the credentials lead to another cluster than before.
	ReasonClusterIdentityChanged = "ClusterIdentityChanged"
	// ReasonOtherHub means: the cluster belongs to the Masthead of another hub.
	ReasonOtherHub = "ManagedByAnotherHub"
	// ReasonHubItself means: the credentials lead to the hub.
	ReasonHubItself = "HubItself"
	// ReasonProbeFailed means: the API server's response to a request needed for connecting is unexpected.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonAnswerRefused means: a response of the API server exceeds a limit or is not JSON, and was not decoded.
	ReasonAnswerRefused = "AnswerRefused"
	// ReasonMemoryShareExceeded means: the memory budget of the manager is full, and the cluster exceeds its share. The
	// excess data is not kept.
	ReasonMemoryShareExceeded = "MemoryShareExceeded"
	// ReasonEventsDelayed means: for more than a minute the cluster has sent more events, or responses, than the limit for
	// one cluster. None is lost, but all are late.
	ReasonEventsDelayed = "EventsDelayed"
	// ReasonClassNotFound means: the enrolment's EnrollmentClass does not exist.
	ReasonClassNotFound = "ClassNotFound"
	// ReasonNamespaceNotAllowed means: the EnrollmentClass does not allow clusters of the enrolled object's namespace.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonClassFull means: the EnrollmentClass holds as many clusters as its spec.maxClusters allows, without this one.
	ReasonClassFull = "ClassFull"
	// ReasonDraining means: the cluster is being disengaged, and running work is given time to end.
	ReasonDraining = "Draining"
	// ReasonEngageFailed means: a controller refused the cluster.
	ReasonEngageFailed = "EngageFailed"
	// ReasonPanicked means: the manager panicked while handling the cluster's data, and disconnected it. It will retry.
	ReasonPanicked = "Panicked"
	// ReasonUnenrolled means: the object is gone or no longer enrolled.
	ReasonUnenrolled = "Unenrolled"
)
