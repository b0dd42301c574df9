// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"
)

// certificateLifetime is long enough for a fleet that was forgotten, and no longer.
const certificateLifetime = 365 * 24 * time.Hour

// keyPair is a certificate and its key in PEM.
type keyPair struct{ certificate, key []byte }

// authority is a certificate authority. Each cluster has two of its own, one for the API and one for etcd, so that no
// certificate of one cluster gives access to another, and only the API server's gives access to etcd.
type authority struct {
	keyPair
	parsed *x509.Certificate
	signer *ecdsa.PrivateKey
	clock  clock.PassiveClock
}

// newAuthority creates an authority.
func newAuthority(name string, c clock.PassiveClock) (*authority, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: name}, c)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("cannot create the certificate authority %q: %w", name, err)
	}
	return parseAuthority(pair, c)
}

// loadAuthority reads an authority that was written with write.
func loadAuthority(folder, name string, c clock.PassiveClock) (*authority, error) {
	pair, err := readKeyPair(folder, name)
	if err != nil {
		return nil, err
	}
	return parseAuthority(pair, c)
}

func parseAuthority(pair keyPair, c clock.PassiveClock) (*authority, error) {
	block, _ := pem.Decode(pair.certificate)
	keyBlock, _ := pem.Decode(pair.key)
	if block == nil || keyBlock == nil {
		return nil, errors.New("cannot parse a certificate authority: not PEM")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the certificate of an authority: %w", err)
	}
	signer, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the key of an authority: %w", err)
	}
	return &authority{keyPair: pair, parsed: parsed, signer: signer, clock: c}, nil
}

// server issues a certificate for a server on this machine that is also valid under the given names and addresses. It
// is a client certificate too, which the members of etcd need for each other.
func (a *authority) server(name string, alternatives ...string) (keyPair, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: name}, a.clock)
	if err != nil {
		return keyPair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	for _, alternative := range alternatives {
		if ip := net.ParseIP(alternative); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, alternative)
		}
	}
	return a.issue(template)
}

// client issues a certificate for a user in the given groups.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: user, Organization: groups}, a.clock)
	if err != nil {
		return keyPair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	pair, err := sign(template, a.parsed, key, a.signer)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot issue a certificate for %q: %w", template.Subject.CommonName, err)
	}
	return pair, nil
}

// newSigningKey creates the key pair with which an API server signs and checks service account tokens.
func newSigningKey() (keyPair, error) {
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot encode a key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot encode a key: %w", err)
	}
	return keyPair{certificate: encodePEM("PUBLIC KEY", public), key: encodePEM("EC PRIVATE KEY", private)}, nil
}

// newKey creates a key of the kind that takes the least time to create and to use.
func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create a key: %w", err)
	}
	return key, nil
}

func certificateTemplate(subject pkix.Name, c clock.PassiveClock) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("cannot create a serial number: %w", err)
	}
	// Certificates are valid from an hour ago, for machines whose clock is being corrected.
	begin := c.Now().Add(-time.Hour)
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: begin, NotAfter: begin.Add(certificateLifetime),
	}, nil
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (keyPair, error) {
	certificate, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return keyPair{}, err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{certificate: encodePEM("CERTIFICATE", certificate), key: encodePEM("EC PRIVATE KEY", encoded)}, nil
}

func encodePEM(kind string, bytes []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
}

// write puts the pair into folder as name.crt and name.key.
func (p keyPair) write(folder, name string) error {
	if err := writeFile(filepath.Join(folder, name+".crt"), p.certificate); err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, name+".key"), p.key)
}

func readKeyPair(folder, name string) (keyPair, error) {
	certificate, err := os.ReadFile(filepath.Join(folder, name+".crt"))
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot read the certificate %q: %w", name, err)
	}
	key, err := os.ReadFile(filepath.Join(folder, name+".key"))
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot read the key %q: %w", name, err)
	}
	return keyPair{certificate: certificate, key: key}, nil
}
