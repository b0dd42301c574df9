// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"errors"
	"testing"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

func TestComposeTakesTheUserAndNothingElse(t *testing.T) {
	authority, client := newPair(t, "authority"), newPair(t, "client")
	cluster := clientcmdv1.Cluster{
		Server: "https://w1.example.org:6443", CertificateAuthorityData: authority.cert, TLSServerName: "kubernetes",
		Extensions: []clientcmdv1.NamedExtension{{Name: "client.authentication.k8s.io/exec"}},
	}
	x := newFile()
	x.cluster = map[string]any{
		"server": "http://169.254.169.254", "insecure-skip-tls-verify": true, "proxy-url": "http://proxy.example.org",
	}
	x.user["client-certificate-data"], x.user["client-key-data"] = b64(client.cert), b64(client.key)
	data, err := Compose(cluster, x.bytes(t), "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := c.RESTConfig()
	if c.Host() != "https://w1.example.org:6443" || !bytes.Equal(cfg.CAData, authority.cert) ||
		cfg.ServerName != "kubernetes" || cfg.Insecure || cfg.Proxy != nil {
		t.Errorf("want the cluster that is described, got %+v", cfg)
	}
	if c.Token() != "s3cr3t-t0ken" || !bytes.Equal(cfg.CertData, client.cert) || !bytes.Equal(cfg.KeyData, client.key) {
		t.Error("want the user's token and client certificate")
	}
}

func TestComposeRefusesWhatParseRefusesOfAUser(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*file)
		context string
		want    string
	}{
		"Exec":          {change: func(x *file) { x.user["exec"] = map[string]any{"command": "sh"} }, want: ReasonRefused},
		"TokenFile":     {change: func(x *file) { x.user["tokenFile"] = "/token" }, want: ReasonRefused},
		"Impersonates":  {change: func(x *file) { x.user["as"] = "system:admin" }, want: ReasonRefused},
		"NoCredentials": {change: func(x *file) { delete(x.user, "token") }, want: ReasonNoCredentials},
		"NoSuchContext": {change: func(*file) {}, context: "other", want: ReasonMalformed},
		"TwoContexts": {
			change: func(x *file) {
				context := map[string]any{"name": "ctx", "context": map[string]any{"cluster": "c", "user": "u"}}
				x.top["contexts"] = []any{context, context}
			},
			context: "ctx", want: ReasonAmbiguous,
		},
	} {
		x := newFile()
		tc.change(x)
		_, err := Compose(clientcmdv1.Cluster{Server: "https://w1.example.org"}, x.bytes(t), tc.context)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || invalid.Reason != tc.want {
			t.Errorf("%s: want the reason %q, got %v", name, tc.want, err)
		}
	}
}

func TestComposeUser(t *testing.T) {
	for token, want := range map[string]string{"good": "", "": ReasonNoCredentials, "with a\nline": ReasonMalformed} {
		data, err := ComposeUser(clientcmdv1.Cluster{Server: "https://w1.example.org"}, clientcmdv1.AuthInfo{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse(data, Options{})
		var invalid *InvalidError
		if errors.As(err, &invalid); want == "" && (err != nil || c.Token() != token) ||
			want != "" && (invalid == nil || invalid.Reason != want) {
			t.Errorf("%q: want the reason %q, got %v", token, want, err)
		}
	}
}
