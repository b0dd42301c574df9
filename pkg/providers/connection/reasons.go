// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import "github.com/masthead-dev/masthead/pkg/providers/connection/reason"

// Reasons say why a cluster is in its state. Each is documented at its declaration.
const (
	ReasonConnected              = reason.ReasonConnected
	ReasonConnecting             = reason.ReasonConnecting
	ReasonDialError              = reason.ReasonDialError
	ReasonEndpointDenied         = reason.ReasonEndpointDenied
	ReasonTLSError               = reason.ReasonTLSError
	ReasonUnauthorized           = reason.ReasonUnauthorized
	ReasonForbidden              = reason.ReasonForbidden
	ReasonBadKubeconfig          = reason.ReasonBadKubeconfig
	ReasonNoCredentials          = reason.ReasonNoCredentials
	ReasonNotReady               = reason.ReasonNotReady
	ReasonPaused                 = reason.ReasonPaused
	ReasonDuplicateCluster       = reason.ReasonDuplicateCluster
	ReasonBadIdentifier          = reason.ReasonBadIdentifier
	ReasonClusterIdentityChanged = reason.ReasonClusterIdentityChanged
	ReasonOtherHub               = reason.ReasonOtherHub
	ReasonHubItself              = reason.ReasonHubItself
	ReasonProbeFailed            = reason.ReasonProbeFailed
	ReasonAnswerRefused          = reason.ReasonAnswerRefused
	ReasonMemoryShareExceeded    = reason.ReasonMemoryShareExceeded
	ReasonEventsDelayed          = reason.ReasonEventsDelayed
	ReasonClassNotFound          = reason.ReasonClassNotFound
	ReasonNamespaceNotAllowed    = reason.ReasonNamespaceNotAllowed
	ReasonClassFull              = reason.ReasonClassFull
	ReasonDraining               = reason.ReasonDraining
	ReasonEngageFailed           = reason.ReasonEngageFailed
	ReasonPanicked               = reason.ReasonPanicked
	ReasonUnenrolled             = reason.ReasonUnenrolled
)
