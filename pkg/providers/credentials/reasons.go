// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

// Reasons of an InvalidError.
const (
	// ReasonEmpty means: there is no kubeconfig where it should be.
	ReasonEmpty = "Empty"
	// ReasonTooLarge means: the kubeconfig is larger than MaxSize.
	ReasonTooLarge = "TooLarge"
	// ReasonMalformed means: it is not a kubeconfig, or a part of it cannot be read.
	ReasonMalformed = "Malformed"
	// ReasonAmbiguous means: it is not clear which context, or which of two kubeconfigs, is meant.
	ReasonAmbiguous = "Ambiguous"
	// ReasonNotOurs means: the Secret does not belong to the enrolled object.
	ReasonNotOurs = "NotOurs"
	// ReasonBadServer means: the server's address is not one that is connected to.
	ReasonBadServer = "BadServer"
	// ReasonDenied means: the server's address is in a network that the operator denies.
	ReasonDenied = "Denied"
	// ReasonRefused means: it holds something that is never or not by default allowed.
	ReasonRefused = "Refused"
	// ReasonBadCertificate means: a certificate, an authority or a key cannot be used.
	ReasonBadCertificate = "BadCertificate"
	// ReasonNoCredentials means: it holds neither a token nor a client certificate.
	ReasonNoCredentials = "NoCredentials"
)
