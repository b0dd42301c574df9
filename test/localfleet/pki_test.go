// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func TestAuthority(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := testingclock.NewFakePassiveClock(now)
	ours, err := newAuthority("ours", clock)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newAuthority("other", clock)
	if err != nil {
		t.Fatal(err)
	}
	// An authority that was written and read again must still be able to sign.
	folder := t.TempDir()
	if err = ours.write(folder, authorityName); err != nil {
		t.Fatal(err)
	}
	ours, err = loadAuthority(folder, authorityName, clock)
	if err != nil {
		t.Fatal(err)
	}
	server, err := ours.server("kube-apiserver", "10.96.0.1", "kubernetes.default.svc")
	if err != nil {
		t.Fatal(err)
	}
	client, err := ours.client("alice", "team-a")
	if err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason    string
		pair      keyPair
		authority *authority
		host      string
		usage     x509.ExtKeyUsage
		now       time.Time
		valid     bool
	}{
		"Loopback":    {reason: "Servers are reached on 127.0.0.1.", pair: server, authority: ours, host: "127.0.0.1", usage: x509.ExtKeyUsageServerAuth, now: now, valid: true},
		"Alternative": {reason: "Other names can be added.", pair: server, authority: ours, host: "kubernetes.default.svc", usage: x509.ExtKeyUsageServerAuth, now: now, valid: true},
		"OtherHost":   {reason: "A server is valid under its own names only.", pair: server, authority: ours, host: "192.0.2.1", usage: x509.ExtKeyUsageServerAuth, now: now},
		"OtherCA":     {reason: "One cluster's certificates mean nothing in another.", pair: server, authority: other, host: "127.0.0.1", usage: x509.ExtKeyUsageServerAuth, now: now},
		"Client":      {reason: "A user's certificate identifies a client.", pair: client, authority: ours, usage: x509.ExtKeyUsageClientAuth, now: now, valid: true},
		"NoServer":    {reason: "A user's certificate cannot be a server's.", pair: client, authority: ours, usage: x509.ExtKeyUsageServerAuth, now: now},
		"OtherClient": {reason: "A user of one cluster is unknown in another.", pair: client, authority: other, usage: x509.ExtKeyUsageClientAuth, now: now},
		"Expired":     {reason: "Certificates end.", pair: client, authority: ours, usage: x509.ExtKeyUsageClientAuth, now: now.Add(certificateLifetime)},
		"SlowClock":   {reason: "A clock that is a little behind does no harm.", pair: client, authority: ours, usage: x509.ExtKeyUsageClientAuth, now: now.Add(-time.Minute), valid: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(tc.authority.certificate)
			_, err := parseCertificate(t, tc.pair).Verify(x509.VerifyOptions{
				Roots: roots, DNSName: tc.host, CurrentTime: tc.now, KeyUsages: []x509.ExtKeyUsage{tc.usage},
			})
			if (err == nil) != tc.valid {
				t.Errorf("%s\nVerify(): want valid %t, got error %v", tc.reason, tc.valid, err)
			}
		})
	}
	if subject := parseCertificate(t, client).Subject; subject.CommonName != "alice" || len(subject.Organization) != 1 || subject.Organization[0] != "team-a" {
		t.Errorf("client(): want user alice in group team-a, got %s", subject)
	}
}

func parseCertificate(t *testing.T, pair keyPair) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(pair.certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}
