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

// MaxPublicAuthorities is how many bytes of certificates an Endpoint has at most.
const MaxPublicAuthorities = 64 << 10

// An Endpoint is how an API server is reached and recognised. It may be published: nothing in it is secret, and nothing
// is copied from a kubeconfig that was not understood.
type Endpoint struct {
	// Server is the address of the API server as a URL, in its normal form.
	Server string

	// Authorities are the certificates by which the server is recognised, as PEM; none means those of the system.
	Authorities []byte

	// TLSServerName is the name that the server's certificate has to bear, if that is not the one in the address.
	TLSServerName string

	// InsecureSkipTLSVerify says that the server is not recognised at all.
	InsecureSkipTLSVerify bool

	// ProxyURL is the proxy through which the server is reached, or empty.
	ProxyURL string
}

// Endpoint returns how the API server is reached. It returns nil if that cannot be published: the proxy needs a
// password, or the certificates are larger than MaxPublicAuthorities. Every call returns the same, which must not be
// changed.
func (c *Credentials) Endpoint() *Endpoint { return c.endpoint }

// endpointOf is what may be published of a cluster that was checked.
func endpointOf(host string, c *clientcmdv1.Cluster, proxy *url.URL) *Endpoint {
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

// certificatesIn are the certificates of a bundle, without what stands around them: comments, and the headers of PEM
// blocks.
func certificatesIn(bundle []byte) []byte {
	var out bytes.Buffer
	for rest := bundle; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			return out.Bytes()
		}
		if _, err := x509.ParseCertificate(b.Bytes); err == nil && b.Type == "CERTIFICATE" {
			_ = pem.Encode(&out, &pem.Block{Type: b.Type, Bytes: b.Bytes}) // A buffer takes everything.
		}
	}
}
