// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/sha256"
	"fmt"
)

// A Change says how two sets of credentials differ.
type Change string

const (
	// Unchanged means: both mean the same.
	Unchanged Change = "Unchanged"
	// TokenChanged means: only the bearer token differs, so that it can be swapped in a live connection.
	TokenChanged Change = "TokenChanged"
	// Replaced means: the endpoint, its authority or the kind of credentials differs, so that a new connection is needed.
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

// fingerprint is what is compared: every part in a normal form, secrets as digests.
type fingerprint struct {
	host       string // scheme, lower-case name or address, port, path without a trailing slash
	ca         string // digest over the sorted certificates
	clientCert string // digest over the chain and the key
	hasToken   bool
	transport  string // server name for TLS, insecure TLS, proxy, compression
}

// A Fingerprint tells credentials from others: equal ones mean the same. It reveals nothing of the secrets in them.
type Fingerprint [sha256.Size]byte

// Fingerprint covers all that Compare looks at, the token included.
func (c *Credentials) Fingerprint() Fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []any{
		c.print.host, c.print.ca, c.print.clientCert, c.print.hasToken, c.print.transport, c.token,
	}))
}

// Compare says how two sets of credentials differ. The comparison is by meaning: the order and names of entries,
// comments, text encoding and the order of authorities do not matter, and neither do contexts that are not used.
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

// Cause says what the most important difference between two sets of credentials is, as one of the Cause constants.
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
