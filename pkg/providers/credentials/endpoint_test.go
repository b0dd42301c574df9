// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEndpointHoldsNothingSecret(t *testing.T) {
	a := newPair(t, "a")
	const server = "https://api.example.org:6443"
	cases := map[string]struct {
		reason string
		change func(*file)
		want   *Endpoint
	}{
		"Authorities": {
			reason: "Only the certificates are returned, without headers and comments.",
			change: func(f *file) {
				withHeader := bytes.Replace(a.cert, []byte("-----\n"), []byte("-----\nToken: s3cr3t-t0ken\n\n"), 1)
				f.cluster["certificate-authority-data"] = b64([]byte("# token: s3cr3t-t0ken\n" + string(withHeader) + "s3cr3t-t0ken\n"))
				f.cluster["tls-server-name"] = "kubernetes.default"
			},
			want: &Endpoint{Server: server, Authorities: a.cert, TLSServerName: "kubernetes.default"},
		},
		"Insecure": {
			reason: "Clients need to know it.",
			change: func(f *file) { f.cluster["insecure-skip-tls-verify"] = true },
			want:   &Endpoint{Server: server, InsecureSkipTLSVerify: true},
		},
		"Proxy": {
			reason: "Only where it is matters of a proxy.",
			change: func(f *file) { f.cluster["proxy-url"] = "http://proxy.example.org:3128/x?token=s3cr3t-t0ken" },
			want:   &Endpoint{Server: server, ProxyURL: "http://proxy.example.org:3128"},
		},
		"ProxyWithPassword": {
			reason: "Without the password it would lead nowhere.",
			change: func(f *file) { f.cluster["proxy-url"] = "http://me:s3cr3t-t0ken@proxy.example.org:3128" },
		},
		"OnlyContext": {
			reason: "The only context is returned for clients that need a current context.",
			change: func(f *file) { delete(f.top, "current-context") },
			want:   &Endpoint{Server: server, Context: "ctx"},
		},
		"Large": {
			reason: "What is published is stored by all clients that watch it.",
			change: func(f *file) {
				f.cluster["certificate-authority-data"] = b64(bytes.Repeat(a.cert, MaxPublicAuthorities/len(a.cert)+1))
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFile()
			tc.change(f)
			c, err := Parse(f.bytes(t), Options{AllowInsecureTLS: true, AllowProxy: true})
			if err != nil {
				t.Fatal(err)
			}
			got := c.Endpoint()
			if got != nil && len(got.Authorities) == 0 {
				got.Authorities = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if got != nil && strings.Contains(got.Server+string(got.Authorities)+got.ProxyURL+got.TLSServerName, "s3cr3t") {
				t.Errorf("a secret is in %+v", got)
			}
		})
	}
}
