// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigs(t *testing.T) {
	e := endpoint{server: "https://127.0.0.1:20000", ca: []byte("ca")}
	type connection struct {
		Host, CA, Token, Certificate, Key string
		Insecure                          bool
	}
	cases := map[string]struct {
		reason string
		write  func() ([]byte, error)
		want   connection
	}{
		"Token": {
			reason: "The credentials of a service account are its token.",
			write:  func() ([]byte, error) { return tokenKubeconfig("w1", "masthead", e, "secret") },
			want:   connection{Host: e.server, CA: "ca", Token: "secret"},
		},
		"Certificate": {
			reason: "The credentials of a user are a certificate and its key.",
			write: func() ([]byte, error) {
				return certificateKubeconfig("w1", "admin", e, keyPair{certificate: []byte("crt"), key: []byte("key")})
			},
			want: connection{Host: e.server, CA: "ca", Certificate: "crt", Key: "key"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := tc.write()
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig(data)
			if err != nil {
				t.Fatal(err)
			}
			got := connection{
				Host: config.Host, CA: string(config.CAData), Token: config.BearerToken, Insecure: config.Insecure,
				Certificate: string(config.CertData), Key: string(config.KeyData),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClusterKubeconfig writes what a cluster would write and reads it as its users would.
func TestClusterKubeconfig(t *testing.T) {
	f := newFleet(Options{Dir: t.TempDir(), Log: t.Output()}, &fleetState{})
	c, err := f.newCluster("w1")
	if err != nil {
		t.Fatal(err)
	}
	if err = c.update(func(state *clusterState) { state.Ports[portAPIServer] = 20007 }); err != nil {
		t.Fatal(err)
	}
	if err = c.writeAdminKubeconfig(); err != nil {
		t.Fatal(err)
	}
	config, err := f.Config("w1")
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://127.0.0.1:20007"; config.Host != want {
		t.Errorf("Config(): want host %s, got %s", want, config.Host)
	}
	if _, err = rest.HTTPClientFor(config); err != nil {
		t.Errorf("Config(): the certificates cannot be used: %v", err)
	}
	if info, err := os.Stat(filepath.Join(f.Dir(), "w1.kubeconfig")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the administrator's kubeconfig must be for its owner only: %v, %v", info, err)
	}
	user, err := f.UserConfig("w1", "alice", "team-a")
	if err != nil {
		t.Fatal(err)
	}
	certificate := parseCertificate(t, keyPair{certificate: user.CertData})
	if certificate.Subject.CommonName != "alice" {
		t.Errorf("UserConfig(): want a certificate for alice, got one for %s", certificate.Subject)
	}
}
