// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// tlsConfig trusts only the authority in the file and presents the certificate called name in folder.
func tlsConfig(authority, folder, name string) (*tls.Config, error) {
	ca, err := os.ReadFile(authority)
	if err != nil {
		return nil, fmt.Errorf("cannot read a certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	pair, err := readKeyPair(folder, name)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.certificate, pair.key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate %q: %w", name, err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{certificate}}, nil
}

// tlsClient is an HTTP client with tlsConfig. It makes a new connection for each request, because another server than
// at the last request may be listening on the port.
func tlsClient(authority, folder, name string) (*http.Client, error) {
	config, err := tlsConfig(authority, folder, name)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}, nil
}

// probe returns nil if the URL answers with 200, else an error with the answer.
func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("cannot look at %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot look at %s: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return fmt.Errorf("cannot look at %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
