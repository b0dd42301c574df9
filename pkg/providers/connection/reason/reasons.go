// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reason

// Reasons say why a cluster is in its state. They are the reasons of the conditions that the inventory publishes, of
// the events on the enrolled object, and the values of the label "reason" of the probe metrics.
const (
	// ReasonConnected means: the cluster is engaged and its last probe succeeded.
	ReasonConnected = "Connected"
	// ReasonConnecting means: a connection is being made.
	ReasonConnecting = "Connecting"
	// ReasonDialError means: the API server's address cannot be resolved or reached, or does not answer in time.
	ReasonDialError = "DialError"
	// ReasonEndpointDenied means: the API server's name leads to an address to which no connections are made, or the
	// operator denies those to its address.
	ReasonEndpointDenied = "EndpointDenied"
	// ReasonTLSError means: something answered, but not with a certificate that the kubeconfig's authority signed for that
	// name, or it does not speak TLS.
	ReasonTLSError = "TLSError"
	// ReasonUnauthorized means: the API server does not accept the credentials (401), and the Secret holds no newer ones.
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden means: the credentials are accepted, but may not read the namespace kube-system, whose UID is the
	// cluster's identity, or may not read or write the marker, which says which hub the cluster belongs to.
	ReasonForbidden = "Forbidden"
	// ReasonBadKubeconfig means: the kubeconfig cannot be used or holds something that is refused.
	ReasonBadKubeconfig = "BadKubeconfig"
	// ReasonNoCredentials means: the Secret with the kubeconfig does not exist.
	ReasonNoCredentials = "NoCredentials"
	// ReasonNotReady means: the source says that the cluster is not ready to be connected.
	ReasonNotReady = "NotReady"
	// ReasonPaused means: the enrolled object is paused.
	ReasonPaused = "Paused"
	// ReasonDuplicateCluster means: another enrolment holds the same cluster, or the same cluster identifier.
	ReasonDuplicateCluster = "DuplicateCluster"
	// ReasonBadIdentifier means: the annotation for the cluster identifier has a value that is refused, because it has the
	// form of a UUID, as only the UIDs of clusters do.
	ReasonBadIdentifier = "BadIdentifier"
	// ReasonClusterIdentityChanged means: the credentials lead to another cluster than before.
	ReasonClusterIdentityChanged = "ClusterIdentityChanged"
	// ReasonOtherHub means: the cluster belongs to the Masthead of another hub.
	ReasonOtherHub = "ManagedByAnotherHub"
	// ReasonHubItself means: the credentials lead to the hub.
	ReasonHubItself = "HubItself"
	// ReasonProbeFailed means: the API server answered a question that connecting needs with something unexpected.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonAnswerRefused means: an answer of the API server exceeds a limit or is not JSON, and was not decoded.
	ReasonAnswerRefused = "AnswerRefused"
	// ReasonMemoryShareExceeded means: the memory budget of the manager is full, and the cluster asks for more than its
	// share of it. What would have been kept for it is not.
	ReasonMemoryShareExceeded = "MemoryShareExceeded"
	// ReasonEventsDelayed means: for more than a minute the cluster has sent more events, or answers, than are read of one
	// cluster. None is lost, and all of them are late.
	ReasonEventsDelayed = "EventsDelayed"
	// ReasonClassNotFound means: the EnrollmentClass that the enrolment names does not exist.
	ReasonClassNotFound = "ClassNotFound"
	// ReasonNamespaceNotAllowed means: the EnrollmentClass does not allow clusters of the enrolled object's namespace.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonClassFull means: the EnrollmentClass holds as many clusters as its spec.maxClusters allows, without this one.
	ReasonClassFull = "ClassFull"
	// ReasonDraining means: the cluster is being disengaged, and work that runs is given time to end.
	ReasonDraining = "Draining"
	// ReasonEngageFailed means: a controller refused the cluster, or its cache stopped by itself.
	ReasonEngageFailed = "EngageFailed"
	// ReasonPanicked means: the manager panicked while it handled something of the cluster, and disconnected it. It is
	// tried again.
	ReasonPanicked = "Panicked"
	// ReasonUnenrolled means: the object is gone or no longer enrolled.
	ReasonUnenrolled = "Unenrolled"
)
