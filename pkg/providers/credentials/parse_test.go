// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pair is a self-signed certificate and its key, as PEM.
type pair struct{ cert, key []byte }

func newPair(tb testing.TB, name string) pair {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return pair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

// file is a kubeconfig with one cluster, one user and one context, to be changed by a test.
type file struct {
	cluster, user map[string]any
	top           map[string]any
}

func newFile() *file {
	return &file{
		cluster: map[string]any{"server": "https://api.example.org:6443"},
		user:    map[string]any{"token": "s3cr3t-t0ken"},
		top:     map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "ctx"},
	}
}

func (f *file) bytes(tb testing.TB) []byte {
	tb.Helper()
	doc := map[string]any{
		"clusters": []any{map[string]any{"name": "c", "cluster": f.cluster}},
		"users":    []any{map[string]any{"name": "u", "user": f.user}},
		"contexts": []any{map[string]any{"name": "ctx", "context": map[string]any{"cluster": "c", "user": "u"}}},
	}
	maps.Copy(doc, f.top)
	b, err := json.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func TestParse(t *testing.T) {
	a, b := newPair(t, "a"), newPair(t, "b")
	type want struct{ reason, host string }
	cases := map[string]struct {
		reason string
		change func(*file)
		raw    string
		o      Options
		want   want
	}{
		"Token": {
			reason: "A server and a token are all that is needed.",
			want:   want{host: "https://api.example.org:6443"},
		},
		"ClientCertificate": {
			reason: "A client certificate and its key serve as well as a token.",
			change: func(f *file) {
				f.user = map[string]any{"client-certificate-data": b64(a.cert), "client-key-data": b64(a.key)}
				f.cluster["certificate-authority-data"] = b64(append(a.cert, b.cert...))
				f.cluster["tls-server-name"] = "kubernetes.default"
			},
			want: want{host: "https://api.example.org:6443"},
		},
		"HostIsNormal": {
			reason: "Case, the default port, a dot and a slash at the end do not matter.",
			change: func(f *file) { f.cluster["server"] = "https://API.Example.org./k8s/clusters/x/" },
			want:   want{host: "https://api.example.org:443/k8s/clusters/x"},
		},
		"IPv6": {
			reason: "An IPv6 address keeps its brackets.",
			change: func(f *file) { f.cluster["server"] = "https://[2001:DB8::1]:6443" },
			want:   want{host: "https://[2001:db8::1]:6443"},
		},
		"OnlyContext": {
			reason: "Without a current context, the only one is meant.",
			change: func(f *file) { delete(f.top, "current-context") },
			want:   want{host: "https://api.example.org:6443"},
		},
		"UnknownKeysAreIgnored": {
			reason: "What is not known is not used, and is no reason to refuse.",
			change: func(f *file) { f.top["preferences"] = map[string]any{}; f.top["extra"] = 1 },
			want:   want{host: "https://api.example.org:6443"},
		},
		"Empty":     {reason: "White space is no kubeconfig.", raw: " \n", want: want{reason: ReasonEmpty}},
		"TooLarge":  {reason: "The size is limited before anything is parsed.", raw: strings.Repeat("a", MaxSize+1), want: want{reason: ReasonTooLarge}},
		"NotYAML":   {reason: "What cannot be read is refused.", raw: "{", want: want{reason: ReasonMalformed}},
		"NotAMap":   {reason: "A scalar is no kubeconfig.", raw: "hello", want: want{reason: ReasonMalformed}},
		"KeyTwice":  {reason: "Readers differ in which of two keys they take.", raw: "kind: Config\nkind: Config\n", want: want{reason: ReasonMalformed}},
		"WrongKind": {reason: "Another kind of document is refused.", change: func(f *file) { f.top["kind"] = "Secret" }, want: want{reason: ReasonMalformed}},
		"NoContexts": {
			reason: "Without contexts nothing says which cluster is meant.",
			change: func(f *file) { delete(f.top, "current-context"); f.top["contexts"] = []any{} },
			want:   want{reason: ReasonAmbiguous},
		},
		"TwoContextsAndNoneCurrent": {
			reason: "A guess between two contexts could connect to the wrong cluster.",
			change: func(f *file) {
				delete(f.top, "current-context")
				f.top["contexts"] = []any{map[string]any{"name": "x"}, map[string]any{"name": "y"}}
			},
			want: want{reason: ReasonAmbiguous},
		},
		"ContextMissing": {
			reason: "A current context that is not there is refused.",
			change: func(f *file) { f.top["current-context"] = "other" },
			want:   want{reason: ReasonMalformed},
		},
		"ClusterTwice": {
			reason: "Two clusters of the name that is used are refused.",
			change: func(f *file) {
				f.top["clusters"] = []any{map[string]any{"name": "c", "cluster": f.cluster}, map[string]any{"name": "c", "cluster": f.cluster}}
			},
			want: want{reason: ReasonAmbiguous},
		},
		"Exec": {
			reason: "A program is never run.",
			change: func(f *file) {
				f.user["exec"] = map[string]any{"command": "/bin/sh", "apiVersion": "client.authentication.k8s.io/v1"}
			},
			want: want{reason: ReasonRefused},
		},
		"AuthProvider":    {reason: "A plugin is never loaded.", change: func(f *file) { f.user["auth-provider"] = map[string]any{"name": "oidc"} }, want: want{reason: ReasonRefused}},
		"TokenFile":       {reason: "A file of the manager is never read, not even beside a token.", change: func(f *file) { f.user["tokenFile"] = "/var/run/secrets/kubernetes.io/serviceaccount/token" }, want: want{reason: ReasonRefused}},
		"CertificateFile": {reason: "As above.", change: func(f *file) { f.user["client-certificate"] = "/etc/passwd" }, want: want{reason: ReasonRefused}},
		"KeyFile":         {reason: "As above.", change: func(f *file) { f.user["client-key"] = "/etc/passwd" }, want: want{reason: ReasonRefused}},
		"AuthorityFile":   {reason: "As above.", change: func(f *file) { f.cluster["certificate-authority"] = "/etc/passwd" }, want: want{reason: ReasonRefused}},
		"As":              {reason: "Impersonation is refused.", change: func(f *file) { f.user["as"] = "admin" }, want: want{reason: ReasonRefused}},
		"AsUID":           {reason: "Impersonation is refused.", change: func(f *file) { f.user["as-uid"] = "1" }, want: want{reason: ReasonRefused}},
		"AsGroups":        {reason: "Impersonation is refused.", change: func(f *file) { f.user["as-groups"] = []string{"system:masters"} }, want: want{reason: ReasonRefused}},
		"AsUserExtra":     {reason: "Impersonation is refused.", change: func(f *file) { f.user["as-user-extra"] = map[string]any{"a": []string{"b"}} }, want: want{reason: ReasonRefused}},
		"Password":        {reason: "Basic authentication is refused.", change: func(f *file) { f.user["username"] = "a"; f.user["password"] = "b" }, want: want{reason: ReasonRefused}},
		"Insecure":        {reason: "Unverified TLS is refused by default.", change: func(f *file) { f.cluster["insecure-skip-tls-verify"] = true }, want: want{reason: ReasonRefused}},
		"InsecureAllowed": {
			reason: "Unverified TLS is a choice of the operator.",
			change: func(f *file) { f.cluster["insecure-skip-tls-verify"] = true },
			o:      Options{AllowInsecureTLS: true},
			want:   want{host: "https://api.example.org:6443"},
		},
		"InsecureWithAuthority": {
			reason: "Both together cannot be meant.",
			change: func(f *file) {
				f.cluster["insecure-skip-tls-verify"] = true
				f.cluster["certificate-authority-data"] = b64(a.cert)
			},
			o:    Options{AllowInsecureTLS: true},
			want: want{reason: ReasonMalformed},
		},
		"Proxy":        {reason: "A proxy is refused by default.", change: func(f *file) { f.cluster["proxy-url"] = "http://proxy:3128" }, want: want{reason: ReasonRefused}},
		"ProxyAllowed": {reason: "A proxy is a choice of the operator.", change: func(f *file) { f.cluster["proxy-url"] = "http://proxy:3128" }, o: Options{AllowProxy: true}, want: want{host: "https://api.example.org:6443"}},
		"ProxyScheme":  {reason: "Only proxies that Go can use.", change: func(f *file) { f.cluster["proxy-url"] = "gopher://proxy:70" }, o: Options{AllowProxy: true}, want: want{reason: ReasonBadServer}},
		"NoServer":     {reason: "Without a server there is nothing to connect to.", change: func(f *file) { delete(f.cluster, "server") }, want: want{reason: ReasonBadServer}},
		"PlainHTTP":    {reason: "Credentials are never sent in plain text.", change: func(f *file) { f.cluster["server"] = "http://api.example.org" }, want: want{reason: ReasonBadServer}},
		"NoScheme":     {reason: "client-go would take http.", change: func(f *file) { f.cluster["server"] = "api.example.org:6443" }, want: want{reason: ReasonBadServer}},
		"UserInURL":    {reason: "A user in the address is refused.", change: func(f *file) { f.cluster["server"] = "https://a:s3cr3t@api.example.org" }, want: want{reason: ReasonBadServer}},
		"Query":        {reason: "A query in the address is refused.", change: func(f *file) { f.cluster["server"] = "https://api.example.org/?token=s3cr3t" }, want: want{reason: ReasonBadServer}},
		"Fragment":     {reason: "A fragment in the address is refused.", change: func(f *file) { f.cluster["server"] = "https://api.example.org/#s3cr3t" }, want: want{reason: ReasonBadServer}},
		"DotDot":       {reason: "A path that climbs is refused.", change: func(f *file) { f.cluster["server"] = "https://api.example.org/a/../b" }, want: want{reason: ReasonBadServer}},
		"Port":         {reason: "A port that does not exist is refused.", change: func(f *file) { f.cluster["server"] = "https://api.example.org:70000" }, want: want{reason: ReasonBadServer}},
		"OddHost":      {reason: "A host name with a space or a percent sign is refused.", change: func(f *file) { f.cluster["server"] = "https://a%20b" }, want: want{reason: ReasonBadServer}},
		"Metadata":     {reason: "The metadata service of a cloud is no API server.", change: func(f *file) { f.cluster["server"] = "https://169.254.169.254" }, want: want{reason: ReasonBadServer}},
		"Denied":       {reason: "The operator denies that network.", change: func(f *file) { f.cluster["server"] = "https://10.96.0.1" }, o: deny("10.96.0.0/12"), want: want{reason: ReasonDenied}},
		"DeniedMapped": {reason: "However the address is written.", change: func(f *file) { f.cluster["server"] = "https://[::ffff:10.96.0.1]:443" }, o: deny("10.96.0.0/12"), want: want{reason: ReasonDenied}},
		"Loopback":     {reason: "Loopback is refused by default.", change: func(f *file) { f.cluster["server"] = "https://127.0.0.1:6443" }, want: want{reason: ReasonBadServer}},
		"Localhost":    {reason: "So is its name.", change: func(f *file) { f.cluster["server"] = "https://localhost:6443" }, want: want{reason: ReasonBadServer}},
		"LoopbackAllowed": {
			reason: "Loopback is a choice of the operator.", change: func(f *file) { f.cluster["server"] = "https://127.0.0.1:6443" },
			o: Options{AllowLoopback: true}, want: want{host: "https://127.0.0.1:6443"},
		},
		"Zone":             {reason: "An address with a zone names an interface of the manager.", change: func(f *file) { f.cluster["server"] = "https://[fe80::1%25eth0]:6443" }, want: want{reason: ReasonBadServer}},
		"NoCredentials":    {reason: "Anonymous access is not what anybody means.", change: func(f *file) { f.user = map[string]any{} }, want: want{reason: ReasonNoCredentials}},
		"TokenWithNewline": {reason: "A token that would break out of its header is refused.", change: func(f *file) { f.user["token"] = "s3cr3t\r\nX-Evil: 1" }, want: want{reason: ReasonMalformed}},
		"NotBase64":        {reason: "Data that is not base64 is refused.", change: func(f *file) { f.cluster["certificate-authority-data"] = "!!s3cr3t!!" }, want: want{reason: ReasonMalformed}},
		"NoPEM":            {reason: "An authority that is no certificate is refused.", change: func(f *file) { f.cluster["certificate-authority-data"] = b64([]byte("s3cr3t")) }, want: want{reason: ReasonBadCertificate}},
		"KeyAsAuthority":   {reason: "A key in the place of an authority is refused.", change: func(f *file) { f.cluster["certificate-authority-data"] = b64(a.key) }, want: want{reason: ReasonBadCertificate}},
		"OtherKey":         {reason: "A key of another certificate is refused.", change: func(f *file) { f.user["client-certificate-data"], f.user["client-key-data"] = b64(a.cert), b64(b.key) }, want: want{reason: ReasonBadCertificate}},
		"KeyOnly":          {reason: "A key without its certificate is refused.", change: func(f *file) { f.user["client-key-data"] = b64(a.key) }, want: want{reason: ReasonBadCertificate}},
		"ServerName":       {reason: "A server name for TLS that is no name is refused.", change: func(f *file) { f.cluster["tls-server-name"] = "a b" }, want: want{reason: ReasonMalformed}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw := []byte(tc.raw)
			if tc.raw == "" {
				f := newFile()
				if tc.change != nil {
					tc.change(f)
				}
				raw = f.bytes(t)
			}
			c, err := Parse(raw, tc.o)
			got := want{}
			var invalid *InvalidError
			switch {
			case errors.As(err, &invalid):
				got.reason = invalid.Reason
				if strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("%s\nthe error holds the secret: %s", tc.reason, err)
				}
			case err != nil:
				t.Fatalf("%s\nnot an *InvalidError: %v", tc.reason, err)
			default:
				got.host = c.Host()
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s\nerror: %v", tc.reason, diff, err)
			}
		})
	}
}

// What an option refuses is refused with the name of the flag that allows it, which is that of the manager and of
// kubectl masthead.
func TestRefusalNamesTheFlag(t *testing.T) {
	for name, tc := range map[string]struct {
		field, value string
		o            Options
		flag         string
	}{
		"Insecure":  {"insecure-skip-tls-verify", "", Options{}, "--allow-insecure-kubeconfig-tls"},
		"Proxy":     {"proxy-url", "http://proxy:3128", Options{}, "--allow-kubeconfig-proxy"},
		"Loopback":  {"server", "https://127.0.0.1:6443", Options{}, "--allow-loopback-endpoints"},
		"Localhost": {"server", "https://localhost:6443", Options{}, "--allow-loopback-endpoints"},
		"IPv6":      {"server", "https://[::1]:6443", Options{}, "--allow-loopback-endpoints"},
		"Denied":    {"server", "https://10.1.2.3", deny("10.0.0.0/8"), "--denied-endpoint-cidrs"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile()
			f.cluster[tc.field] = tc.value
			if tc.value == "" {
				f.cluster[tc.field] = true
			}
			if _, err := Parse(f.bytes(t), tc.o); err == nil || !strings.Contains(err.Error(), tc.flag) {
				t.Errorf("want %s to be named, got %v", tc.flag, err)
			}
		})
	}
}

func TestCredentialsHoldNoSecretInTheirConfigOrText(t *testing.T) {
	c, err := Parse(newFile().bytes(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.RESTConfig().BearerToken; got != "" {
		t.Errorf("the token is in the rest.Config: want none, got %q", got)
	}
	if want, got := "s3cr3t-t0ken", c.Token(); want != got {
		t.Errorf("Token(): want %q, got %q", want, got)
	}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprint(c.MarshalLog())} {
		if strings.Contains(text, "s3cr3t") {
			t.Errorf("printed credentials hold the token: %s", text)
		}
	}
}

func deny(cidrs ...string) Options {
	var o Options
	for _, c := range cidrs {
		p, err := ParseCIDR(c)
		if err != nil {
			panic(err)
		}
		o.DeniedCIDRs = append(o.DeniedCIDRs, p)
	}
	return o
}

func TestParseCIDR(t *testing.T) {
	cases := map[string]struct{ reason, cidr, want string }{
		"IPv4":        {"A network of IPv4 addresses.", "10.0.0.0/8", "10.0.0.0/8"},
		"IPv6":        {"A network of IPv6 addresses.", "fd00::/8", "fd00::/8"},
		"One":         {"One address.", "192.0.2.1/32", "192.0.2.1/32"},
		"Mapped":      {"IPv4 addresses in IPv6 notation are IPv4 addresses.", "::ffff:10.0.0.0/104", "10.0.0.0/8"},
		"Address":     {"An address is not a network: its size is not guessed.", "10.0.0.1", ""},
		"HostBits":    {"It is not clear whether the host or its network is meant.", "10.0.0.1/8", ""},
		"Zone":        {"A network has no zone.", "fe80::%eth0/10", ""},
		"Nothing":     {"Nothing is no network.", "", ""},
		"NotANetwork": {"A name is no network.", "localhost/8", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCIDR(tc.cidr)
			if (err != nil) != (tc.want == "") || err == nil && got.String() != tc.want {
				t.Errorf("%s\nwant %q, got %v, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

func TestCheckAddress(t *testing.T) {
	cases := map[string]struct {
		reason  string
		address string
		o       Options
		refused bool
	}{
		"Private":            {reason: "Workload clusters live in private networks.", address: "10.0.0.1"},
		"Public":             {reason: "Managed clusters have public addresses.", address: "203.0.113.7"},
		"UniqueLocal":        {reason: "So do IPv6 clusters.", address: "fd00::1"},
		"LinkLocal":          {reason: "Metadata services live there.", address: "169.254.0.1", refused: true},
		"LinkLocalV6":        {reason: "As above.", address: "fe80::1", refused: true},
		"MappedLinkLocal":    {reason: "An IPv4 address in IPv6 notation is the same address.", address: "::ffff:169.254.169.254", refused: true},
		"NAT64LinkLocal":     {reason: "So is one that a gateway translates.", address: "64:ff9b::a9fe:a9fe", refused: true},
		"Unspecified":        {reason: "Linux takes it for the own host.", address: "0.0.0.0", refused: true},
		"ThisNetwork":        {reason: "As above.", address: "0.1.2.3", refused: true},
		"UnspecifiedV6":      {reason: "As above.", address: "::", refused: true},
		"Multicast":          {reason: "No API server has a multicast address.", address: "224.0.0.1", refused: true},
		"Broadcast":          {reason: "As above.", address: "255.255.255.255", refused: true},
		"Azure":              {reason: "A metadata service that is not link-local.", address: "168.63.129.16", refused: true},
		"AWSV6":              {reason: "As above.", address: "fd00:ec2::254", refused: true},
		"Loopback":           {reason: "The manager's own Pod.", address: "127.0.0.1", refused: true},
		"LoopbackV6":         {reason: "As above.", address: "::1", refused: true},
		"LoopbackAllowed":    {reason: "Allowed by flag.", address: "127.0.0.1", o: Options{AllowLoopback: true}},
		"Denied":             {reason: "The operator denies that network.", address: "10.96.0.1", o: deny("10.96.0.0/12"), refused: true},
		"DeniedMapped":       {reason: "An IPv4 address in IPv6 notation is the same address.", address: "::ffff:10.96.0.1", o: deny("10.96.0.0/12"), refused: true},
		"DeniedNAT64":        {reason: "So is one that a gateway translates.", address: "64:ff9b::a60:1", o: deny("10.96.0.0/12"), refused: true},
		"DeniedZone":         {reason: "A zone is no way around it.", address: "fd00:10::1%eth0", o: deny("fd00:10::/32"), refused: true},
		"DeniedGateway":      {reason: "The addresses of the gateway itself can be denied.", address: "64:ff9b::cb00:7107", o: deny("64:ff9b::/96"), refused: true},
		"DeniedInIPv6":       {reason: "The network may be written as IPv4 in IPv6 notation, too.", address: "10.96.0.1", o: deny("::ffff:10.96.0.0/108"), refused: true},
		"DeniedEverything":   {reason: "All of IPv4 can be denied.", address: "203.0.113.7", o: deny("0.0.0.0/0"), refused: true},
		"DeniedV4Only":       {reason: "That says nothing about IPv6.", address: "fd00::1", o: deny("0.0.0.0/0")},
		"NotDenied":          {reason: "An address beside the network is not in it.", address: "10.112.0.1", o: deny("10.96.0.0/12")},
		"DeniedLoopback":     {reason: "What is denied wins over what is allowed.", address: "127.0.0.1", o: Options{AllowLoopback: true, DeniedCIDRs: deny("127.0.0.0/8").DeniedCIDRs}, refused: true},
		"UnspecifiedAllowed": {reason: "The flag is about loopback only.", address: "0.0.0.0", o: Options{AllowLoopback: true}, refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.o.CheckAddress(netip.MustParseAddr(tc.address))
			if got := err != nil; got != tc.refused {
				t.Errorf("%s\nwant refused %t, got %v", tc.reason, tc.refused, err)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	a, b := newPair(t, "a"), newPair(t, "b")
	withCert := func(p pair) func(*file) {
		return func(f *file) {
			f.user = map[string]any{"client-certificate-data": b64(p.cert), "client-key-data": b64(p.key)}
		}
	}
	type want struct {
		change Change
		cause  string
	}
	cases := map[string]struct {
		reason   string
		old, now func(*file)
		yaml     string
		want     want
	}{
		"Same":  {reason: "The same means the same.", want: want{Unchanged, CauseNone}},
		"Token": {reason: "Only the token differs.", now: func(f *file) { f.user["token"] = "other" }, want: want{TokenChanged, CauseToken}},
		"Names": {
			reason: "Names, order, comments and other entries do not matter.",
			yaml: `# a comment
users: [{name: other, user: {exec: {command: sh}}}, {name: me, user: {token: s3cr3t-t0ken}}]
contexts: [{name: x, context: {user: me, cluster: here, namespace: foo}}, {name: z, context: {user: other, cluster: here}}]
current-context: x
clusters: [{name: here, cluster: {server: "https://API.example.org:6443/"}}]
`,
			want: want{Unchanged, CauseNone},
		},
		"Authorities": {
			reason: "The order of authorities, and what is around them, does not matter.",
			old:    func(f *file) { f.cluster["certificate-authority-data"] = b64(append(a.cert, b.cert...)) },
			now: func(f *file) {
				f.cluster["certificate-authority-data"] = b64([]byte("# comment\n" + string(b.cert) + "\n\n" + string(a.cert) + string(a.cert)))
			},
			want: want{Unchanged, CauseNone},
		},
		"Authority": {
			reason: "Another authority needs a new connection.",
			old:    func(f *file) { f.cluster["certificate-authority-data"] = b64(a.cert) },
			now:    func(f *file) { f.cluster["certificate-authority-data"] = b64(b.cert) },
			want:   want{Replaced, CauseCA},
		},
		"Port":       {reason: "Another port is another endpoint.", now: func(f *file) { f.cluster["server"] = "https://api.example.org:6444" }, want: want{Replaced, CauseEndpoint}},
		"Path":       {reason: "So is another path.", now: func(f *file) { f.cluster["server"] = "https://api.example.org:6443/x" }, want: want{Replaced, CauseEndpoint}},
		"ClientCert": {reason: "A new client certificate needs a new TLS handshake.", old: withCert(a), now: withCert(b), want: want{Replaced, CauseClientCert}},
		"CertToToken": {
			reason: "Another kind of credentials needs a new connection: the old one presented its certificate already.",
			old:    withCert(a), want: want{Replaced, CauseClientCert},
		},
		"ServerName":    {reason: "Another server name needs a new TLS handshake.", now: func(f *file) { f.cluster["tls-server-name"] = "x" }, want: want{Replaced, CauseTransport}},
		"TokenAndPort":  {reason: "More than the token changed.", now: func(f *file) { f.user["token"] = "x"; f.cluster["server"] = "https://api.example.org:1" }, want: want{Replaced, CauseEndpoint}},
		"SameWithCerts": {reason: "Certificates are compared by content.", old: withCert(a), now: withCert(a), want: want{Unchanged, CauseNone}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			old, now := newFile(), newFile()
			if tc.old != nil {
				tc.old(old)
			}
			if tc.now != nil {
				tc.now(now)
			}
			raw := now.bytes(t)
			if tc.yaml != "" {
				raw = []byte(tc.yaml)
			}
			x, err := Parse(old.bytes(t), Options{})
			if err != nil {
				t.Fatal(err)
			}
			y, err := Parse(raw, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := want{Compare(x, y), Cause(x, y)}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// secret is long enough not to be part of any message by accident.
const secret = "hunter2hunter2hunter2"

// FuzzParse verifies that nothing makes Parse panic, that what it accepts obeys the rules, and that no error contains a
// part of the input that could be a secret.
func FuzzParse(f *testing.F) {
	p := newPair(f, "fuzz")
	for _, change := range []func(*file){
		func(*file) {},
		func(x *file) { x.user["exec"] = map[string]any{"command": "sh"} },
		func(x *file) { x.cluster["server"] = "https://user:" + secret + "@host" },
		func(x *file) { x.cluster["server"] = secret },
		func(x *file) { x.cluster["insecure-skip-tls-verify"] = secret },
		func(x *file) {
			x.user = map[string]any{"client-certificate-data": b64(p.cert), "client-key-data": b64(p.key)}
		},
		func(x *file) { x.cluster["certificate-authority-data"] = secret },
		func(x *file) { x.top["current-context"] = secret },
		func(x *file) { x.top["clusters"] = secret },
	} {
		x := newFile()
		x.user["token"] = secret
		change(x)
		f.Add(x.bytes(f), false, false)
	}
	f.Add([]byte("a: &a [x]\nb: *a\nusers: [{name: u, user: {token: "+secret+"}}]\n"), true, true)
	f.Add([]byte("users:\n- user: {token: ["+secret+"]}\n"), true, true)
	f.Fuzz(func(t *testing.T, raw []byte, insecure, proxy bool) {
		o := Options{AllowInsecureTLS: insecure, AllowProxy: proxy}
		c, err := Parse(raw, o)
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
		cfg := c.RESTConfig()
		if !strings.HasPrefix(cfg.Host, "https://") || strings.ContainsAny(cfg.Host, "@?#") {
			t.Errorf("unexpected host %q", cfg.Host)
		}
		if cfg.Insecure && !insecure || cfg.Proxy != nil && !proxy {
			t.Error("something was accepted that the options do not allow")
		}
		if cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.BearerTokenFile != "" || cfg.CAFile != "" || cfg.CertFile != "" ||
			cfg.KeyFile != "" || cfg.Username != "" || cfg.Password != "" || cfg.Impersonate.UserName != "" || cfg.BearerToken != "" {
			t.Errorf("something was accepted that is never allowed")
		}
		if Compare(c, c) != Unchanged {
			t.Error("credentials differ from themselves")
		}
	})
}
