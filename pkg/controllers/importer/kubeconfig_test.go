// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"crypto/tls"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// apiServer is an API server with a certificate for a name. It counts the requests that have a token.
func apiServer(t *testing.T, name string) (at *url.URL, ca []byte, tokens *int) {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	tokens = new(int)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer t" {
			*tokens++
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	at, err = url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return at, chain, tokens
}

// TestServerOfTheSpec: credentials go to a server that the spec names only if the operator allows it, and only if it
// presents the certificate of the observed cluster, or one of a public authority if the spec says so.
func TestServerOfTheSpec(t *testing.T) {
	const observed, notAllowed = "abc.gr7.eu-central-1.eks.amazonaws.com", "--allowed-import-servers"
	forwarder, ca, received := apiServer(t, observed)
	attacker, _, stolen := apiServer(t, observed)
	for name, tc := range map[string]struct {
		allowed     []string
		server      string
		certificate fleetv1alpha1.ServerCertificate
		// refused is a part of the message. What the operator does not allow withdraws an earlier kubeconfig.
		refused string
		reached bool
	}{
		"Forwarder":      {allowed: []string{forwarder.String()}, server: forwarder.String(), reached: true},
		"OtherCluster":   {allowed: []string{attacker.String()}, server: attacker.String()},
		"NoneAllowed":    {server: forwarder.String(), refused: notAllowed},
		"AnotherAllowed": {allowed: []string{attacker.String()}, server: forwarder.String(), refused: notAllowed},
		"OtherPath":      {allowed: []string{forwarder.String() + "/a/"}, server: forwarder.String() + "/b/a/", refused: notAllowed},
		"OutOfThePath":   {allowed: []string{forwarder.String() + "/a/"}, server: forwarder.String() + "/a/../b", refused: notAllowed},
		"PlainText":      {allowed: []string{forwarder.String()}, server: "http://" + forwarder.Host, refused: notAllowed},
		"Encoded": {
			allowed: []string{forwarder.String() + "/a/"}, server: forwarder.String() + "/a/%252e%252e/b", refused: notAllowed,
		},
		"User": {allowed: []string{forwarder.String()}, server: "https://u:p@" + forwarder.Host, refused: notAllowed},
		"PublicAuthority": {
			allowed: []string{forwarder.String()}, server: forwarder.String(), certificate: fleetv1alpha1.ServerCertificatePublic,
		},
		"DeniedAddress": {allowed: []string{"https://0.0.0.0"}, server: "https://0.0.0.0", refused: "address"},
	} {
		for _, source := range []string{"observed", "published", "insecure", "certificate"} {
			t.Run(name+"/"+source, func(t *testing.T) {
				*received, *stolen = 0, 0
				allowed, err := token.ParseAllowed(tc.allowed)
				if err != nil {
					t.Fatal(err)
				}
				r := &kubeconfigs{creds: credentials.Options{AllowLoopback: true, AllowInsecureTLS: true}, servers: allowed}
				server := &fleetv1alpha1.ImportServer{URL: fleetv1alpha1.HTTPSURL(tc.server), Certificate: tc.certificate}
				s := newScope(&fleetv1alpha1.ClusterImport{Spec: fleetv1alpha1.ClusterImportSpec{
					EKS: &fleetv1alpha1.EKSImport{}, Kubeconfig: &fleetv1alpha1.ImportKubeconfig{Server: server},
				}})
				facts := &reflection.Facts{
					Endpoint: reflection.Endpoint{Host: observed, Port: 443}, CertificateAuthority: base64.StdEncoding.EncodeToString(ca),
				}
				content, err := kubeconfigFrom(t, r, s, facts, source)
				if tc.refused != "" {
					if !isProblem(err) || !strings.Contains(err.Error(), tc.refused) || isWithdrawn(err) != (tc.refused == notAllowed) {
						t.Errorf("want a problem with %q, got %v", tc.refused, err)
					}
					return
				}
				if source == "certificate" && tc.certificate == fleetv1alpha1.ServerCertificatePublic {
					if !isProblem(err) || strings.Contains(string(content), "client-key-data") {
						t.Errorf("want a problem, since a gateway takes a token only, got %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				get(t, content)
				if (*received > 0) != (tc.reached && (source == "observed" || source == "published")) || *stolen > 0 {
					t.Errorf("the forwarder received %d tokens, want %v; the attacker %d", *received, tc.reached, *stolen)
				}
			})
		}
	}
}

// kubeconfigFrom returns the kubeconfig of an import as its cluster is observed, or from a published one: with a token,
// with a token and no verification of the server, or with a client certificate.
func kubeconfigFrom(t *testing.T, r *kubeconfigs, s *scope, facts *reflection.Facts, source string) ([]byte, error) {
	t.Helper()
	if err := r.checkServer(s.imp.Spec.Kubeconfig); err != nil || source == "observed" {
		if err != nil {
			return nil, err
		}
		return r.composed(t.Context(), s, observation{facts: facts}, "t")
	}
	e := facts.Endpoint
	ca, err := base64.StdEncoding.DecodeString(facts.CertificateAuthority)
	if err != nil {
		t.Fatal(err)
	}
	cluster, user := &clientcmdapi.Cluster{Server: "https://" + e.Host, CertificateAuthorityData: ca}, &clientcmdapi.AuthInfo{Token: "t"}
	switch source {
	case "insecure":
		cluster.CertificateAuthorityData, cluster.InsecureSkipTLSVerify = nil, true
	case "certificate":
		chain, key, err := cert.GenerateSelfSignedCertKey("user", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		user = &clientcmdapi.AuthInfo{ClientCertificateData: chain, ClientKeyData: key}
	}
	published, err := encoded(cluster, user)
	if err != nil {
		t.Fatal(err)
	}
	return r.sanitised(published, s, facts)
}

// get sends a request with the credentials of a kubeconfig, which may fail.
func get(t *testing.T, kubeconfig []byte) {
	t.Helper()
	parsed, err := credentials.Parse(kubeconfig, credentials.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(parsed.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, parsed.Host()+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+parsed.Token())
	if response, err := client.Do(request); err == nil {
		_ = response.Body.Close()
	}
}

// TestPublicNameOfAPrivateCluster: the kubeconfig that AKS publishes has the private name of a private cluster.
func TestPublicNameOfAPrivateCluster(t *testing.T) {
	published, err := encoded(
		&clientcmdapi.Cluster{Server: "https://shop.privatelink.westeurope.azmk8s.io:8443"}, &clientcmdapi.AuthInfo{Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for endpoint, want := range map[fleetv1alpha1.AKSEndpoint]string{
		"":                               "https://shop.privatelink.westeurope.azmk8s.io:8443",
		fleetv1alpha1.AKSEndpointPrivate: "https://shop.privatelink.westeurope.azmk8s.io:8443",
		fleetv1alpha1.AKSEndpointPublic:  "https://shop.hcp.westeurope.azmk8s.io:8443",
	} {
		s := newScope(&fleetv1alpha1.ClusterImport{Spec: fleetv1alpha1.ClusterImportSpec{AKS: &fleetv1alpha1.AKSImport{Endpoint: endpoint}}})
		facts := &reflection.Facts{Endpoint: reflection.Endpoint{Host: "shop.hcp.westeurope.azmk8s.io", Port: 443}}
		content, err := (&kubeconfigs{}).sanitised(published, s, facts)
		if err != nil {
			t.Fatal(err)
		}
		if parsed, err := credentials.Parse(content, credentials.Options{}); err != nil || parsed.Host() != want {
			t.Errorf("%q: want %s, got %v, %v", endpoint, want, parsed, err)
		}
	}
}
