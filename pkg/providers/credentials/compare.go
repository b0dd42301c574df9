// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/sha256"
	"fmt"
)

// A Change describes how two sets of credentials differ.
type Change string

const (
	// Unchanged means: both are equivalent.
	Unchanged Change = "Unchanged"
	// TokenChanged means: only the bearer token differs, so it can be swapped in a live connection.
	TokenChanged Change = "TokenChanged"
	// Replaced means: the endpoint, its authority or the kind of credentials differs, so a new connection is needed.
	Replaced Change = "Replaced"
)

// Causes of a new connection, the values of a metric's label.
const (
	CauseNone       = "none"
	CauseToken      = "token"
	CauseEndpoint   = "endpoint"
	CauseCA         = "ca"
	CauseClientCert = "client-cert"
	CauseTransport  = "transport"
)

// fingerprint is the compared form: normalized parts, secrets as digests.
type fingerprint struct {
	host       string // scheme, lower-case name or address, port, path without a trailing slash
	ca         string // digest over the sorted certificates
	clientCert string // digest over the chain and the key
	hasToken   bool
	transport  string // server name for TLS, insecure TLS, proxy, compression
}

// A Fingerprint identifies credentials: equivalent credentials have equal ones. It reveals no secrets.
type Fingerprint [sha256.Size]byte

// Fingerprint covers everything that Compare compares, the token included.
func (c *Credentials) Fingerprint() Fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []any{
		c.print.host, c.print.ca, c.print.clientCert, c.print.hasToken, c.print.transport, c.token,
	}))
}

// Compare returns how two sets of credentials differ. It compares by meaning: the order and names of entries, comments,
// text encoding, the order of authorities and unused contexts do not matter.
func Compare(old, now *Credentials) Change {
	switch {
	case old == nil || now == nil || old.print != now.print:
		return Replaced
	case old.token != now.token:
		return TokenChanged
	default:
		return Unchanged
	}
}

// Cause returns the most important difference between two sets of credentials, as one of the Cause constants.
func Cause(old, now *Credentials) string {
	switch {
	case old == nil || now == nil || old.print.host != now.print.host:
		return CauseEndpoint
	case old.print.ca != now.print.ca:
		return CauseCA
	case old.print.clientCert != now.print.clientCert:
		return CauseClientCert
	case old.print.transport != now.print.transport:
		return CauseTransport
	case old.token != now.token:
		return CauseToken
	default:
		return CauseNone
	}
}
