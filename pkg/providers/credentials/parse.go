// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/pkg/objects"
)

// MaxSize is the maximum size of a kubeconfig in bytes; a Secret can hold no more.
const MaxSize = 1 << 20

// Options allow kubeconfig content that is refused by default, or deny more.
type Options struct {
	// AllowInsecureTLS allows insecure-skip-tls-verify.
	AllowInsecureTLS bool
	// AllowProxy allows proxy-url.
	AllowProxy bool
	// AllowLoopback allows API servers on the manager's own loopback interface, as on a developer's machine. In a cluster,
	// loopback is the manager's own Pod, which no kubeconfig should reach.
	AllowLoopback bool
	// DeniedCIDRs are networks whose API servers and proxies are refused, in addition to those in CheckAddress. They take
	// precedence over AllowLoopback.
	DeniedCIDRs []netip.Prefix
}

// An InvalidError explains why a kubeconfig is refused. It never contains secrets or the text of a parser's error,
// which quotes its input.
type InvalidError struct {
	// Reason is one of the Reason constants.
	Reason string
	// Message explains the error to the author of the kubeconfig.
	Message string
}

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

func invalid(reason, format string, args ...any) *InvalidError {
	return &InvalidError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Parse parses the current context, or the only one, of an untrusted kubeconfig. Its error is an *InvalidError.
func Parse(kubeconfig []byte, o Options) (*Credentials, error) {
	c, err := parse(kubeconfig, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func parse(kubeconfig []byte, o Options) (*Credentials, *InvalidError) {
	file, context, user, err := current(kubeconfig, "")
	if err != nil {
		return nil, err
	}
	cluster, err := findCluster(file, context)
	if err != nil {
		return nil, err
	}
	if err := checkCluster(cluster, o); err != nil {
		return nil, err
	}
	c, err := build(cluster, user, o)
	if err == nil && c.endpoint != nil && file.CurrentContext == "" && len(file.Contexts[0].Name) <= maxPublicContext {
		c.endpoint.Context = file.Contexts[0].Name
	}
	return c, err
}

// maxPublicContext is how long a context's name may be to be published.
const maxPublicContext = 253

// current returns the named context of a kubeconfig, or without a name its current or only one, and its valid user.
func current(kubeconfig []byte, name string) (*clientcmdv1.Config, *clientcmdv1.Context, *clientcmdv1.AuthInfo, *InvalidError) {
	file, err := decode(kubeconfig)
	if err != nil {
		return nil, nil, nil, err
	}
	if name != "" {
		file.CurrentContext = name
	}
	context, err := currentContext(file)
	if err != nil {
		return nil, nil, nil, err
	}
	user, err := named(file.AuthInfos, "user", context.AuthInfo, func(u clientcmdv1.NamedAuthInfo) string { return u.Name })
	if err != nil {
		return nil, nil, nil, err
	}
	if err := checkUser(&user.AuthInfo); err != nil {
		return nil, nil, nil, err
	}
	return file, context, &user.AuthInfo, nil
}

// findCluster returns the cluster of a context.
func findCluster(file *clientcmdv1.Config, context *clientcmdv1.Context) (*clientcmdv1.Cluster, *InvalidError) {
	cluster, err := named(file.Clusters, "cluster", context.Cluster, func(c clientcmdv1.NamedCluster) string { return c.Name })
	if err != nil {
		return nil, err
	}
	return &cluster.Cluster, nil
}

// decode parses YAML or JSON. Duplicate keys are refused, since parsers differ in which one they use; unknown keys are
// ignored, since they are never used.
func decode(kubeconfig []byte) (*clientcmdv1.Config, *InvalidError) {
	if len(kubeconfig) > MaxSize {
		return nil, invalid(ReasonTooLarge, "The kubeconfig is larger than %d bytes", MaxSize)
	}
	if strings.TrimSpace(string(kubeconfig)) == "" {
		return nil, invalid(ReasonEmpty, "The kubeconfig is empty")
	}
	j, err := yaml.YAMLToJSONStrict(kubeconfig)
	if err != nil {
		return nil, invalid(ReasonMalformed, "The kubeconfig is not valid YAML, or has a key twice")
	}
	file := &clientcmdv1.Config{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(j, file); err != nil {
		return nil, invalid(ReasonMalformed, "The kubeconfig has a field of the wrong type, or data that is not base64")
	}
	if (file.Kind != "" && file.Kind != "Config") || (file.APIVersion != "" && file.APIVersion != "v1") {
		return nil, invalid(ReasonMalformed, "The document is not a kubeconfig: kind must be Config and apiVersion v1")
	}
	return file, nil
}

func currentContext(file *clientcmdv1.Config) (*clientcmdv1.Context, *InvalidError) {
	if file.CurrentContext == "" {
		if len(file.Contexts) != 1 {
			return nil, invalid(ReasonAmbiguous, "The kubeconfig has no current-context, and %d contexts instead of one", len(file.Contexts))
		}
		return &file.Contexts[0].Context, nil
	}
	c, err := named(file.Contexts, "context", file.CurrentContext, func(c clientcmdv1.NamedContext) string { return c.Name })
	if err != nil {
		return nil, err
	}
	return &c.Context, nil
}

// named finds the one entry of that name. Messages do not repeat names: a user may have pasted a token into the wrong
// line.
func named[T any](all []T, what, name string, nameOf func(T) string) (*T, *InvalidError) {
	var found *T
	for i := range all {
		if nameOf(all[i]) != name {
			continue
		}
		if found != nil {
			return nil, invalid(ReasonAmbiguous, "The kubeconfig has more than one entry for the %s that is used", what)
		}
		found = &all[i]
	}
	if found == nil || name == "" {
		return nil, invalid(ReasonMalformed, "The kubeconfig does not contain the %s that is used", what)
	}
	return found, nil
}

// checkUser refuses settings that run a program, read a file of the manager, impersonate a user or send a password.
func checkUser(u *clientcmdv1.AuthInfo) *InvalidError {
	for _, r := range []struct {
		set  bool
		what string
		why  string
	}{
		{u.Exec != nil, "exec", "it would run a program in the manager"},
		{u.AuthProvider != nil, "auth-provider", "it would run a plugin in the manager"},
		{u.TokenFile != "", "tokenFile", "it would read a file of the manager"},
		{u.ClientCertificate != "", "client-certificate", "it would read a file of the manager; use client-certificate-data"},
		{u.ClientKey != "", "client-key", "it would read a file of the manager; use client-key-data"},
		{u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0,
			"as, as-uid, as-groups and as-user-extra", "the credentials must belong to the intended user"},
		{u.Username != "" || u.Password != "", "username and password", "API servers have had no basic authentication since Kubernetes 1.19"},
	} {
		if r.set {
			return invalid(ReasonRefused, "The kubeconfig's user sets %s, which is refused: %s", r.what, r.why)
		}
	}
	hasCert, hasKey := len(u.ClientCertificateData) > 0, len(u.ClientKeyData) > 0
	switch {
	case hasCert != hasKey:
		return invalid(ReasonBadCertificate, "The kubeconfig's user has only one of client-certificate-data and client-key-data")
	case u.Token == "" && !hasCert:
		return invalid(ReasonNoCredentials, "The kubeconfig's user has neither a token nor a client certificate")
	case !httpguts.ValidHeaderFieldValue(u.Token) || strings.ContainsAny(u.Token, " \t"):
		return invalid(ReasonMalformed, "The kubeconfig's token holds spaces or control characters")
	}
	return nil
}

func checkCluster(c *clientcmdv1.Cluster, o Options) *InvalidError {
	switch {
	case c.CertificateAuthority != "":
		return invalid(ReasonRefused, "The kubeconfig's cluster sets certificate-authority, which is refused: it would read a file of the manager; use certificate-authority-data")
	case c.InsecureSkipTLSVerify && !o.AllowInsecureTLS:
		return invalid(ReasonRefused, "The kubeconfig's cluster sets insecure-skip-tls-verify, which is refused without --allow-insecure-kubeconfig-tls")
	case c.InsecureSkipTLSVerify && len(c.CertificateAuthorityData) > 0:
		return invalid(ReasonMalformed, "The kubeconfig's cluster sets both insecure-skip-tls-verify and certificate-authority-data")
	case c.ProxyURL != "" && !o.AllowProxy:
		return invalid(ReasonRefused, "The kubeconfig's cluster sets proxy-url, which is refused without --allow-kubeconfig-proxy")
	}
	return nil
}

// parseServer checks the address of the API server and returns its normal form. Its messages never repeat the address
// as written, which may contain a password or a token.
func parseServer(server string, o Options) (string, *InvalidError) {
	u, err := url.Parse(server)
	if server == "" {
		return "", invalid(ReasonBadServer, "The kubeconfig's cluster has no server")
	}
	if err != nil || u.Opaque != "" {
		return "", invalid(ReasonBadServer, "The kubeconfig's server is not a URL")
	}
	if err := checkURL(u, server); err != nil {
		return "", err
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", invalid(ReasonBadServer, "The kubeconfig's server has a port that is not a number from 1 to 65535")
	}
	host, refused := parseHost(u.Hostname(), o)
	if refused != nil {
		return "", refused
	}
	return (&url.URL{Scheme: "https", Host: host + ":" + port, Path: strings.TrimRight(u.Path, "/")}).String(), nil
}

// checkURL refuses parts of a URL that do not belong in the address of an API server.
func checkURL(u *url.URL, server string) *InvalidError {
	switch {
	case u.Scheme == "http":
		return invalid(ReasonBadServer, "The kubeconfig's server is an http URL, which is refused: the credentials would be sent in plain text")
	case u.Scheme != "https":
		return invalid(ReasonBadServer, "The kubeconfig's server is not an https URL")
	case u.User != nil:
		return invalid(ReasonBadServer, "The kubeconfig's server holds a user name, which is refused")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(server, "#"):
		return invalid(ReasonBadServer, "The kubeconfig's server holds a query or a fragment, which is refused")
	case u.Hostname() == "":
		return invalid(ReasonBadServer, "The kubeconfig's server has no host")
	case slices.Contains(strings.Split(u.Path, "/"), ".."):
		return invalid(ReasonBadServer, "The kubeconfig's server has a path with .. in it, which is refused")
	default:
		return nil
	}
}

// parseHost returns the normal form of a name or an address, to which a port can be appended.
func parseHost(host string, o Options) (string, *InvalidError) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host, checkName(host, o)
	}
	if a.Zone() != "" {
		return "", invalid(ReasonBadServer, "The kubeconfig's server is an address with a zone, which is refused")
	}
	switch err := o.CheckAddress(a); {
	case errors.Is(err, ErrDenied):
		return "", invalid(ReasonDenied, "%s", deniedMessage)
	case err != nil:
		return "", invalid(ReasonBadServer, "The kubeconfig's server is refused: %s", err)
	}
	if a.Is6() {
		return "[" + a.String() + "]", nil
	}
	return a.String(), nil
}

func checkName(host string, o Options) *InvalidError {
	switch {
	case !validHostname(host):
		return invalid(ReasonBadServer, "The kubeconfig's server is neither an IP address nor a host name")
	case !o.AllowLoopback && (host == "localhost" || strings.HasSuffix(host, ".localhost")):
		return invalid(ReasonBadServer, "The kubeconfig's server is refused: %s", loopbackRefused)
	default:
		return nil
	}
}

// validHostname is a little wider than DNS allows, since resolvers are: letters, digits, dots, hyphens and underscores.
func validHostname(h string) bool {
	if h == "" || len(h) > 253 {
		return false
	}
	for _, r := range h {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_' {
			return false
		}
	}
	return true
}

func build(c *clientcmdv1.Cluster, u *clientcmdv1.AuthInfo, o Options) (*Credentials, *InvalidError) {
	host, err := parseServer(c.Server, o)
	if err != nil {
		return nil, err
	}
	if c.TLSServerName != "" && !validServerName(c.TLSServerName) {
		return nil, invalid(ReasonMalformed, "The kubeconfig's tls-server-name is neither a host name nor an IP address")
	}
	ca, err := checkAuthorities(c.CertificateAuthorityData)
	if err != nil {
		return nil, err
	}
	clientCert, err := checkClientCertificate(u.ClientCertificateData, u.ClientKeyData)
	if err != nil {
		return nil, err
	}
	cfg := &rest.Config{
		Host: host,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure:   c.InsecureSkipTLSVerify,
			ServerName: c.TLSServerName,
			CAData:     c.CertificateAuthorityData,
			CertData:   u.ClientCertificateData,
			KeyData:    u.ClientKeyData,
		},
		DisableCompression: c.DisableCompression,
	}
	var proxy *url.URL
	if c.ProxyURL != "" {
		if proxy, err = parseProxy(c.ProxyURL); err != nil {
			return nil, err
		}
		cfg.Proxy = http.ProxyURL(proxy)
	}
	return &Credentials{
		config:   cfg,
		token:    u.Token,
		endpoint: newEndpoint(host, c, proxy),
		print: fingerprint{
			host: host, ca: ca, clientCert: clientCert, hasToken: u.Token != "",
			transport: objects.DigestParts(fmt.Sprintf("%q %t %q %t", c.TLSServerName, c.InsecureSkipTLSVerify, c.ProxyURL, c.DisableCompression)),
		},
	}, nil
}

func validServerName(n string) bool {
	if _, err := netip.ParseAddr(n); err == nil {
		return true
	}
	return validHostname(strings.ToLower(n))
}

func parseProxy(proxy string) (*url.URL, *InvalidError) {
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return nil, invalid(ReasonBadServer, "The kubeconfig's proxy-url is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		return nil, invalid(ReasonBadServer, "The kubeconfig's proxy-url is not an http, https or socks5 URL")
	}
	return u, nil
}

// checkAuthorities returns a digest of the certificates. An invalid one is refused, not skipped: silently losing the
// authority in use is hard to debug.
func checkAuthorities(bundle []byte) (string, *InvalidError) {
	if len(bundle) == 0 {
		return "", nil
	}
	var certs []string
	for rest := bundle; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			return "", invalid(ReasonBadCertificate, "The kubeconfig's certificate-authority-data holds a PEM block that is not a certificate")
		}
		if _, err := x509.ParseCertificate(b.Bytes); err != nil {
			return "", invalid(ReasonBadCertificate, "The kubeconfig's certificate-authority-data holds a certificate that cannot be read")
		}
		certs = append(certs, objects.DigestParts(b.Bytes))
	}
	if len(certs) == 0 {
		return "", invalid(ReasonBadCertificate, "The kubeconfig's certificate-authority-data holds no certificate")
	}
	slices.Sort(certs)
	return objects.DigestParts(slices.Compact(certs)...), nil
}

func checkClientCertificate(cert, key []byte) (string, *InvalidError) {
	if len(cert) == 0 {
		return "", nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return "", invalid(ReasonBadCertificate, "The kubeconfig's client-certificate-data and client-key-data cannot be read, or do not belong together")
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return "", invalid(ReasonBadCertificate, "The kubeconfig's client-key-data is of a kind that cannot be used")
	}
	return objects.DigestParts(append(pair.Certificate, keyDER)...), nil
}
