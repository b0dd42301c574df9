// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

// Reasons of an InvalidError.
const (
	// ReasonEmpty means: the kubeconfig is missing.
	ReasonEmpty = "Empty"
	// ReasonTooLarge means: the kubeconfig is larger than MaxSize.
	ReasonTooLarge = "TooLarge"
	// ReasonMalformed means: it is not a kubeconfig, or a part of it is invalid.
	ReasonMalformed = "Malformed"
	// ReasonAmbiguous means: it is ambiguous which context, or which of two kubeconfigs, to use.
	ReasonAmbiguous = "Ambiguous"
	// ReasonNotOurs means: the Secret does not belong to the enrolled object.
	ReasonNotOurs = "NotOurs"
	// ReasonBadServer means: the server's address is invalid or refused.
	ReasonBadServer = "BadServer"
	// ReasonDenied means: the server's address is in a network that the operator denies.
	ReasonDenied = "Denied"
	// ReasonRefused means: it contains something that is never allowed, or not by default.
	ReasonRefused = "Refused"
	// ReasonBadCertificate means: a certificate, an authority or a key cannot be used.
	ReasonBadCertificate = "BadCertificate"
	// ReasonNoCredentials means: it holds neither a token nor a client certificate.
	ReasonNoCredentials = "NoCredentials"
)
