// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestParseUser(t *testing.T) {
	p := newPair(t, "a")
	for name, tc := range map[string]struct {
		reason string
		change func(*file)
		want   string // The reason of the error; empty if there is none.
		names  string // What the message has to name.
	}{
		"Token": {reason: "A token is all that is needed.", change: func(*file) {}},
		"ClientCertificate": {
			reason: "Or a client certificate.",
			change: func(x *file) {
				x.user = map[string]any{"client-certificate-data": b64(p.cert), "client-key-data": b64(p.key)}
			},
		},
		"OtherServer": {
			reason: "Every kubeconfig has a server. It is not used, so it may be any.",
			change: func(x *file) { x.cluster["server"] = "http://169.254.169.254/latest" },
		},
		"OtherAuthority": {
			reason: "Every kubeconfig has an authority. It is not used, so it need not even be one.",
			change: func(x *file) { x.cluster["certificate-authority-data"] = b64([]byte("none")) },
		},
		"Both": {
			reason: "It is not clear who is meant.", want: ReasonAmbiguous, names: "both a token and a client certificate",
			change: func(x *file) {
				x.user["client-certificate-data"], x.user["client-key-data"] = b64(p.cert), b64(p.key)
			},
		},
		"NoUser":      {reason: "There are no credentials.", change: func(x *file) { x.user = map[string]any{} }, want: ReasonNoCredentials, names: "neither a token nor"},
		"Proxy":       refusedCluster("proxy-url", "http://proxy.example.org"),
		"InsecureTLS": refusedCluster("insecure-skip-tls-verify", true),
		"ServerName":  refusedCluster("tls-server-name", "other.example.org"),
		"AuthorityFile": refusedCluster("certificate-authority",
			"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"),
		"Exec":         refusedUser("exec", map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}),
		"AuthProvider": refusedUser("auth-provider", map[string]any{"name": "oidc"}),
		"TokenFile":    refusedUser("tokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
		"CertFile":     refusedUser("client-certificate", "/etc/kubernetes/admin.crt"),
		"KeyFile":      refusedUser("client-key", "/etc/kubernetes/admin.key"),
		"Password":     refusedUser("username", "admin"),
		"Impersonates": refusedUser("as", "system:admin"),
		"ImpersonatesGroup": refusedUser("as-groups",
			[]any{"system:masters"}),
		"UnusedUserWithExec": {
			reason: "Only the user of the current context counts.",
			change: func(x *file) {
				x.top["users"] = []any{
					map[string]any{"name": "u", "user": x.user},
					map[string]any{"name": "other", "user": map[string]any{"exec": map[string]any{"command": "sh"}}},
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFile()
			tc.change(x)
			_, err := ParseUser(x.bytes(t))
			var invalid *InvalidError
			if got := errors.As(err, &invalid); got != (tc.want != "") || got && invalid.Reason != tc.want {
				t.Fatalf("%s want reason %q, got %v", tc.reason, tc.want, err)
			}
			if tc.want != "" && !strings.Contains(err.Error(), tc.names) {
				t.Errorf("want the message to name %q, got %q", tc.names, err)
			}
		})
	}
}

type userCase = struct {
	reason string
	change func(*file)
	want   string
	names  string
}

func refusedCluster(key string, value any) userCase {
	return userCase{
		reason: "It would steer a connection, and is not used.", want: ReasonRefused, names: key,
		change: func(x *file) { x.cluster[key] = value },
	}
}

func refusedUser(key string, value any) userCase {
	return userCase{
		reason: "It does more than identify a user.", want: ReasonRefused, names: key,
		change: func(x *file) { x.user[key] = value },
	}
}

func TestAuthenticateTakesNothingButTheUser(t *testing.T) {
	x := newFile()
	x.cluster["server"] = "https://elsewhere.example.org"
	user, err := ParseUser(x.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	base := &rest.Config{
		Host: "https://hub.example.org:6443", BearerToken: "the-managers", BearerTokenFile: "/the/managers", Username: "manager", Password: "x",
		Impersonate:     rest.ImpersonationConfig{UserName: "another-user"},
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("the hub's"), CertData: []byte("the manager's"), KeyData: []byte("the manager's")},
		WrapTransport:   func(http.RoundTripper) http.RoundTripper { panic("it adds the manager's credentials") },
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, errors.New("the hub's") },
	}
	got := user.Authenticate(base)
	if got.Host != base.Host || string(got.CAData) != "the hub's" || got.Proxy == nil {
		t.Errorf("want the hub to be reached as the manager does, got %v", got)
	}
	if got.BearerToken != "s3cr3t-t0ken" || got.BearerTokenFile != "" || got.Username != "" || got.Password != "" || got.CertData != nil ||
		got.KeyData != nil || got.Impersonate.UserName != "" || got.WrapTransport != nil {
		t.Error("want nothing of the manager's own credentials")
	}
	for _, printed := range []string{fmt.Sprint(user), fmt.Sprintf("%#v", user), fmt.Sprintf("%+v", user), fmt.Sprint(user.MarshalLog())} {
		if strings.Contains(printed, "s3cr3t") {
			t.Errorf("the token is printed: %s", printed)
		}
	}
}

func TestSameUser(t *testing.T) {
	parse := func(change func(*file)) *User {
		t.Helper()
		x := newFile()
		change(x)
		u, err := ParseUser(x.bytes(t))
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	p := newPair(t, "a")
	one := parse(func(*file) {})
	for name, tc := range map[string]struct {
		reason string
		other  *User
		want   bool
	}{
		"Itself":      {"It is the same.", one, true},
		"OtherServer": {"What is not used makes no difference.", parse(func(x *file) { x.cluster["server"] = "https://b" }), true},
		"OtherToken":  {"It has been rotated.", parse(func(x *file) { x.user["token"] = "other" }), false},
		"Certificate": {"It is another user.", parse(func(x *file) {
			x.user = map[string]any{"client-certificate-data": b64(p.cert), "client-key-data": b64(p.key)}
		}), false},
		"None": {"No user is not the same as a user.", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := one.Same(tc.other); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
	if !(*User)(nil).Same(nil) || (*User)(nil).Same(one) {
		t.Error("want a nil user to be the same as nil only")
	}
}

func FuzzParseUser(f *testing.F) {
	p := newPair(f, "fuzz")
	for _, change := range []func(*file){
		func(*file) {},
		func(x *file) { x.user["exec"] = map[string]any{"command": secret} },
		func(x *file) { x.user["as"] = secret },
		func(x *file) { x.cluster["proxy-url"] = "http://u:" + secret + "@proxy" },
		func(x *file) {
			x.user = map[string]any{"client-certificate-data": b64(p.cert), "client-key-data": b64(p.key)}
		},
		func(x *file) { x.top["current-context"] = secret },
		func(x *file) {
			x.top["contexts"] = []any{map[string]any{"name": "ctx", "context": map[string]any{"user": "u"}}}
		},
	} {
		x := newFile()
		x.user["token"] = secret
		change(x)
		f.Add(x.bytes(f))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		u, err := ParseUser(raw)
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Reason == "" {
				t.Fatalf("want an *InvalidError with a reason, got %#v", err)
			}
			for i := 0; i+8 <= len(secret); i++ {
				if strings.Contains(err.Error(), secret[i:i+8]) {
					t.Fatalf("the error holds a part of the secret: %s", err)
				}
			}
			return
		}
		base := &rest.Config{Host: "https://hub.example.org:6443", BearerToken: "the-managers"}
		cfg := u.Authenticate(base)
		if cfg.Host != base.Host || cfg.BearerToken == base.BearerToken || cfg.Insecure || cfg.Proxy != nil || cfg.ServerName != "" || cfg.CAData != nil {
			t.Error("the kubeconfig says how the hub is reached")
		}
		if (cfg.BearerToken != "") == (len(cfg.CertData) > 0) {
			t.Error("want either a token or a client certificate")
		}
		if cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.BearerTokenFile != "" || cfg.CAFile != "" || cfg.CertFile != "" ||
			cfg.KeyFile != "" || cfg.Username != "" || cfg.Password != "" || cfg.Impersonate.UserName != "" || len(cfg.Impersonate.Groups) > 0 {
			t.Error("something was accepted that is never allowed")
		}
		if !u.Same(u) {
			t.Error("the user differs from itself")
		}
	})
}
