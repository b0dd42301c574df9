// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/masthead-dev/masthead/pkg/objects"
)

// A User is the user of a kubeconfig: a bearer token, or a client certificate with its key, without an API server. It
// is immutable, and prints no content.
type User struct {
	token     string
	cert, key []byte
	print     string
}

// ParseUser parses the user of the current context, or of the only one, of an untrusted kubeconfig, for a known API
// server. It ignores the server's address and authority, which every kubeconfig has. It refuses anything else that
// would change a connection or do more than identify a user. Its error is an *InvalidError.
func ParseUser(kubeconfig []byte) (*User, error) {
	u, err := parseUser(kubeconfig)
	if err != nil {
		return nil, err
	}
	return u, nil
}

func parseUser(kubeconfig []byte) (*User, *InvalidError) {
	file, context, user, err := current(kubeconfig, "")
	if err != nil {
		return nil, err
	}
	if user.Token != "" && len(user.ClientCertificateData) > 0 {
		return nil, invalid(ReasonAmbiguous, "The kubeconfig's user has both a token and a client certificate")
	}
	if context.Cluster != "" {
		cluster, err := findCluster(file, context)
		if err != nil {
			return nil, err
		}
		if err := checkIgnoredCluster(cluster); err != nil {
			return nil, err
		}
	}
	cert, err := checkClientCertificate(user.ClientCertificateData, user.ClientKeyData)
	if err != nil {
		return nil, err
	}
	return &User{
		token: user.Token, cert: user.ClientCertificateData, key: user.ClientKeyData,
		print: objects.DigestParts(user.Token, cert),
	}, nil
}

// checkIgnoredCluster refuses connection settings that would be ignored: the author expects them to be used.
func checkIgnoredCluster(c *clientcmdv1.Cluster) *InvalidError {
	for _, r := range []struct {
		set  bool
		what string
	}{
		{c.CertificateAuthority != "", "certificate-authority"},
		{c.InsecureSkipTLSVerify, "insecure-skip-tls-verify"},
		{c.TLSServerName != "", "tls-server-name"},
		{c.ProxyURL != "", "proxy-url"},
		{c.DisableCompression, "disable-compression"},
	} {
		if r.set {
			return invalid(ReasonRefused, "The kubeconfig's cluster sets %s, which is refused: only the user's token or client certificate is used", r.what)
		}
	}
	return nil
}

// Authenticate returns a configuration for the same API server, reached in the same way, with the user's credentials
// instead of base's.
func (u *User) Authenticate(base *rest.Config) *rest.Config {
	cfg := rest.AnonymousClientConfig(base)
	cfg.BearerToken = u.token
	cfg.CertData, cfg.KeyData = u.cert, u.key
	return cfg
}

// Same reports whether two users have the same credentials.
func (u *User) Same(other *User) bool {
	return u == other || u != nil && other != nil && u.print == other.print
}

// String keeps secrets out of logs.
func (u *User) String() string { return "credentials of a user" }

// GoString keeps secrets out of logs, for %#v.
func (u *User) GoString() string { return u.String() }

// MarshalLog keeps secrets out of structured logs.
func (u *User) MarshalLog() any { return u.String() }
