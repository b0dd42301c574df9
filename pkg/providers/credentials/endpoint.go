// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/url"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// MaxPublicAuthorities is the maximum size of an Endpoint's certificates in bytes.
const MaxPublicAuthorities = 64 << 10

// An Endpoint describes how to reach and verify an API server. It may be published: it contains no secrets, and nothing
// copied from a kubeconfig unparsed.
type Endpoint struct {
	// Server is the address of the API server as a URL, in its normal form.
	Server string

	// Authorities are the certificates that verify the server, as PEM; none means those of the system.
	Authorities []byte

	// TLSServerName is the required name in the server's certificate, if it differs from the address.
	TLSServerName string

	// InsecureSkipTLSVerify means that the server is not verified.
	InsecureSkipTLSVerify bool

	// ProxyURL is the proxy to the server, or empty.
	ProxyURL string

	// Context is the kubeconfig's only context if it names no current one: most programs need its name then.
	Context string
}

// Endpoint returns how to reach the API server. It returns nil if that cannot be published: the proxy needs a password,
// or the certificates are larger than MaxPublicAuthorities. Every call returns the same pointer; do not modify it.
func (c *Credentials) Endpoint() *Endpoint { return c.endpoint }

// newEndpoint returns the publishable part of a validated cluster.
func newEndpoint(host string, c *clientcmdv1.Cluster, proxy *url.URL) *Endpoint {
	e := &Endpoint{
		Server: host, Authorities: certificatesIn(c.CertificateAuthorityData), TLSServerName: c.TLSServerName,
		InsecureSkipTLSVerify: c.InsecureSkipTLSVerify,
	}
	if len(e.Authorities) > MaxPublicAuthorities {
		return nil
	}
	if proxy != nil {
		if proxy.User != nil {
			return nil
		}
		e.ProxyURL = (&url.URL{Scheme: proxy.Scheme, Host: proxy.Host}).String()
	}
	return e
}

// certificatesIn returns the certificates of a bundle, without comments and the headers of PEM blocks.
func certificatesIn(bundle []byte) []byte {
	var out bytes.Buffer
	for rest := bundle; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			return out.Bytes()
		}
		if _, err := x509.ParseCertificate(b.Bytes); err == nil && b.Type == "CERTIFICATE" {
			_ = pem.Encode(&out, &pem.Block{Type: b.Type, Bytes: b.Bytes}) // A buffer never fails.
		}
	}
}
