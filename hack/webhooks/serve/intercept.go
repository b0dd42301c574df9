// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// intercept makes a handler serve every host but this one for the clients of this process, which then trust no other
// authority than the handler's. A proxy that refuses connections would not do: a client of gRPC connects when it is
// created, and requests nothing. The authority's certificate is kept in the folder.
func intercept(handler http.Handler, folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot generate a key: %w", err)
	}
	sign := func(hosts ...string) ([]byte, error) {
		// It signs itself and each other one.
		authority := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign,
		}
		leaf := authority
		if len(hosts) > 0 {
			leaf = &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: authority.NotAfter, DNSNames: hosts}
		}
		return x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), key)
	}
	authority, err := sign()
	if err != nil {
		return fmt.Errorf("cannot create the authority: %w", err)
	}
	file := filepath.Join(folder, "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority}), 0o600); err != nil {
		return fmt.Errorf("cannot write the authority: %w", err)
	}
	cloud, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	certify := func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		certificate, err := sign(hello.ServerName)
		return &tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}, err
	}
	// That a client gives up a connection is no news.
	server := &http.Server{Handler: handler, TLSConfig: &tls.Config{GetCertificate: certify}, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.ServeTLS(cloud, "", "") }()
	go func() { _ = http.Serve(proxy, tunnel(cloud.Addr().String(), handler)) }()
	address := "http://" + proxy.Addr().String()
	for name, value := range map[string]string{
		// CAPA has read the system's authorities by now.
		"HTTP_PROXY": address, "HTTPS_PROXY": address, "SSL_CERT_FILE": file, "AWS_CA_BUNDLE": file,
	} {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("cannot set %s: %w", name, err)
		}
	}
	return nil
}

// tunnel connects every client to one address, and serves what is not encrypted itself.
func tunnel(to string, handler http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodConnect {
			handler.ServeHTTP(w, request)
			return
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}
}
