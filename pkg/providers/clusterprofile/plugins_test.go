// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// fakePlugins has the plugins google and aws for the namespace ns.
type fakePlugins struct {
	runs   []*clientauthenticationv1.Cluster
	status clientauthenticationv1.ExecCredentialStatus
	err    error
}

func (f *fakePlugins) Names(namespace string) []string {
	if namespace != "ns" {
		return nil
	}
	return []string{"google", "aws", kubeconfigReader}
}

func (f *fakePlugins) Run(
	_ context.Context, namespace, name string, c *clientauthenticationv1.Cluster,
) (*clientauthenticationv1.ExecCredentialStatus, error) {
	if !slices.Contains(f.Names(namespace), name) {
		return nil, errors.New("it must not be run")
	}
	f.runs = append(f.runs, c)
	return &f.status, f.err
}

func newPluginSource(
	t *testing.T, f *fakePlugins, change ...func(*inventoryv1alpha1.ClusterProfile),
) (*Source, *inventoryv1alpha1.ClusterProfile, *clocktesting.FakePassiveClock) {
	t.Helper()
	p := newProfile(by(provider("google", `{"project":"x"}`)))
	for _, fn := range change {
		fn(p)
	}
	clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	s, _ := newSource(t, p)
	denied, err := credentials.ParseCIDR("10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Plugins: f, Clock: clk}
	o.Credentials.DeniedCIDRs = append(o.Credentials.DeniedCIDRs, denied)
	s.plugins = newPluginRunner(o)
	return s, p, clk
}

// TestPluginOfAProfile includes what a hostile owner of profiles may try.
func TestPluginOfAProfile(t *testing.T) {
	type change = func(*inventoryv1alpha1.ClusterProfile)
	cluster := func(fn func(*clientcmdv1.Cluster)) change {
		return func(p *inventoryv1alpha1.ClusterProfile) { fn(&p.Status.AccessProviders[0].Cluster) }
	}
	extend := func(name, config string) change {
		return cluster(func(c *clientcmdv1.Cluster) {
			extension := runtime.RawExtension{Raw: []byte(config)}
			c.Extensions = append(c.Extensions, clientcmdv1.NamedExtension{Name: name, Extension: extension})
		})
	}
	serve := func(address string) change { return cluster(func(c *clientcmdv1.Cluster) { c.Server = address }) }
	passed := &clientauthenticationv1.Cluster{Server: server, Config: runtime.RawExtension{Raw: []byte(`{"project":"x"}`)}}
	for name, tc := range map[string]struct {
		reason string
		change change
		// runs are the clusters that plugins are passed; notReady is why none is, if that is known before.
		runs     []*clientauthenticationv1.Cluster
		notReady string
		refused  string
	}{
		"Runs": {
			reason: "The operator names the provider and the namespace.", runs: []*clientauthenticationv1.Cluster{passed},
		},
		"First": {
			reason: "The file's order counts.",
			change: by(provider("aws", `{}`), provider("google", `{"project":"x"}`)),
			runs:   []*clientauthenticationv1.Cluster{passed},
		},
		"NoConfig": {
			reason: "A plugin may need none.", change: cluster(func(c *clientcmdv1.Cluster) { c.Extensions = nil }),
			runs: []*clientauthenticationv1.Cluster{{Server: server}},
		},
		"Arguments": {
			reason: "They are ignored.", change: extend("clusterprofiles.multicluster.x-k8s.io/exec/additional-args", `["--x"]`),
			runs: []*clientauthenticationv1.Cluster{passed},
		},
		"Variables": {
			reason: "So are they.",
			change: extend("clusterprofiles.multicluster.x-k8s.io/exec/additional-envs", `{"LD_PRELOAD":"x"}`),
			runs:   []*clientauthenticationv1.Cluster{passed},
		},
		"Reader": {
			reason: "Secrets are preferred.", notReady: "does not name a Secret",
			change: by(provider("google", `{}`), provider(tokenReader, `{}`)),
		},
		"ReaderOfTheOperator": {
			reason: "Its plugin may read Secrets of another namespace.",
			change: by(provider("google", `{}`), provider(kubeconfigReader, `{"namespace":"team"}`)),
			runs: []*clientauthenticationv1.Cluster{
				{Server: server, Config: runtime.RawExtension{Raw: []byte(`{"namespace":"team"}`)}},
			},
		},
		"OtherProvider": {
			reason: "The operator has none of that name.",
			change: by(provider("/bin/sh", `{}`)), notReady: "supported for its namespace",
		},
		"TwoConfigs": {
			reason: "Any choice would be a guess.", change: extend(execExtension, `{}`), notReady: "exactly one extension",
		},
		"Large": {
			reason: "The system would refuse it.",
			change: by(provider("google", `"`+strings.Repeat("x", maxProvider)+`"`)), notReady: "larger than",
		},
		"OtherNamespace": {
			reason:   "The operator does not name it.",
			notReady: "supported for its namespace: kubeconfig-secretreader, secretreader",
			change:   func(p *inventoryv1alpha1.ClusterProfile) { p.Namespace = "team" },
		},
		"Denied": {
			reason: "A server that is denied is not passed.",
			change: serve("https://10.1.2.3"), refused: credentials.ReasonDenied,
		},
		"Metadata": {
			reason: "Nor is one that is always refused.",
			change: serve("https://169.254.169.254"), refused: credentials.ReasonBadServer,
		},
		"PlainHTTP": {
			reason: "Nor one without TLS.", change: serve("http://w1.example.org"), refused: credentials.ReasonBadServer,
		},
		"File": {
			reason: "Nor a path of a file.", refused: credentials.ReasonRefused,
			change: cluster(func(c *clientcmdv1.Cluster) { c.CertificateAuthority = "/var/run/secrets/token" }),
		},
		"Insecure": {
			reason: "Nor one that cannot be verified.", refused: credentials.ReasonRefused,
			change: cluster(func(c *clientcmdv1.Cluster) { c.InsecureSkipTLSVerify = true }),
		},
		"Recreated": {
			reason: "It is another enrolment now.", refused: "none",
			change: func(p *inventoryv1alpha1.ClusterProfile) { p.UID = "u2" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakePlugins{status: clientauthenticationv1.ExecCredentialStatus{Token: "fresh"}}
			change := tc.change
			if change == nil {
				change = func(*inventoryv1alpha1.ClusterProfile) {}
			}
			s, p, _ := newPluginSource(t, f, change)
			e, err := s.Describe(t.Context(), client.ObjectKeyFromObject(p))
			if err != nil {
				t.Fatal(err)
			}
			if e.Ready != (tc.notReady == "") || !strings.Contains(e.NotReadyMessage, tc.notReady) ||
				e.Ready && e.CredentialsVersion == "" {
				t.Errorf("%s\ngot %+v", tc.reason, e)
			}
			e.Object.UID = "u1"
			got, err := s.Kubeconfig(t.Context(), e)
			var invalid *credentials.InvalidError
			switch none := errors.Is(err, connection.ErrNoCredentials); {
			case tc.refused == "none" != none:
				t.Errorf("%s\n%v", tc.reason, err)
			case none:
			case tc.refused != "" || tc.notReady != "":
				if !errors.As(err, &invalid) || tc.refused != "" && invalid.Reason != tc.refused {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}
			case err != nil:
				t.Errorf("%s\n%v", tc.reason, err)
			default:
				c, err := credentials.Parse(got.Data, credentials.Options{})
				if err != nil || c.Token() != "fresh" || c.Host() != server || got.SecretKey != (connection.SecretKey{}) {
					t.Errorf("%s\ngot %v, %v", tc.reason, c, err)
				}
			}
			if diff := cmp.Diff(tc.runs, f.runs); diff != "" {
				t.Errorf("%s\nplugins run (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPluginFails(t *testing.T) {
	s, p, _ := newPluginSource(t, &fakePlugins{err: errors.New("it ended with exit status 1")})
	e, err := s.Describe(t.Context(), client.ObjectKeyFromObject(p))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Kubeconfig(t.Context(), e)
	var problem *condition.Error
	if !errors.As(err, &problem) || problem.Reason != fleetv1alpha1.ReasonNoCredentials ||
		!strings.Contains(problem.Message, "google provides no credentials: it ended with exit status 1") {
		t.Errorf("want a problem that users are shown and that is retried, got %v", err)
	}
}

// TestCredentialsVersionChangesBeforeCredentialsExpire once for each answer, and without an expiry never.
func TestCredentialsVersionChangesBeforeCredentialsExpire(t *testing.T) {
	f := &fakePlugins{status: clientauthenticationv1.ExecCredentialStatus{Token: "a"}}
	s, p, clk := newPluginSource(t, f)
	describe := func() *connection.Enrolment {
		e, err := s.Describe(t.Context(), client.ObjectKeyFromObject(p))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	read := func(life time.Duration) {
		f.status.ExpirationTimestamp = nil
		if life != 0 {
			f.status.ExpirationTimestamp = &metav1.Time{Time: clk.Now().Add(life)}
		}
		if _, err := s.Kubeconfig(t.Context(), describe()); err != nil {
			t.Fatal(err)
		}
	}
	after := func(d time.Duration) string {
		clk.SetTime(clk.Now().Add(d))
		return describe().CredentialsVersion
	}
	first := after(0)
	read(time.Hour)
	if got := after(41 * time.Minute); got != first {
		t.Errorf("want no change before 70 per cent of the life, got %q and %q", first, got)
	}
	second := after(10 * time.Minute)
	if second == first || after(time.Hour) != second {
		t.Errorf("want one change by 84 per cent of the life, got %q, %q, %q", first, second, after(0))
	}
	read(0)
	if got := after(1000 * time.Hour); got != second {
		t.Errorf("want no change for what does not expire, got %q and %q", second, got)
	}
	read(time.Hour)
	if third := after(time.Hour); third == second || third == first {
		t.Errorf("want another change for another answer, got %q, %q and %q", first, second, third)
	}
	if err := s.profiles.(client.Client).Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	_, err := s.Describe(t.Context(), client.ObjectKeyFromObject(p))
	if !errors.Is(err, connection.ErrNotEnrolled) || len(s.plugins.runs) != 0 {
		t.Errorf("want nothing kept of a profile that is gone, got %v, %v", err, s.plugins.runs)
	}
}

func TestRenewalTime(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		life, from, to time.Duration
	}{
		"Hour":    {life: time.Hour, from: 42 * time.Minute, to: 51 * time.Minute},
		"Short":   {life: 5 * time.Second, from: minRunInterval, to: minRunInterval},
		"Expired": {life: -time.Hour, from: minRunInterval, to: minRunInterval},
		"Never":   {life: math.MaxInt64, from: 200 * 365 * 24 * time.Hour, to: math.MaxInt64},
	} {
		got := renewalTime(now, metav1.Time{Time: now.Add(tc.life)}).Sub(now)
		if got < tc.from || got > tc.to {
			t.Errorf("%s: want %v to %v, got %v", name, tc.from, tc.to, got)
		}
	}
	if got := renewalTime(now, metav1.Time{}); !got.IsZero() {
		t.Errorf("want none without an expiry, got %v", got)
	}
}

// TestExpiry: a certificate ends a connection as well as a token does, whether the plugin says so or not.
func TestExpiry(t *testing.T) {
	pem, _, err := cert.GenerateSelfSignedCertKey("user", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := cert.ParseCertsPEM(pem)
	if err != nil {
		t.Fatal(err)
	}
	end := chain[0].NotAfter
	before, after := metav1.NewTime(end.Add(-time.Hour)), metav1.NewTime(end.Add(time.Hour))
	for name, tc := range map[string]struct {
		says *metav1.Time
		cert string
		late bool
		want time.Time
	}{
		"Nothing":           {},
		"Token":             {says: &before, want: before.Time},
		"Certificate":       {cert: string(pem), want: end},
		"CertificateBefore": {says: &after, cert: string(pem), want: end},
		"CertificateAfter":  {says: &before, cert: string(pem), want: before.Time},
		"Expired":           {cert: string(pem), late: true},
		"NoCertificate":     {says: &before, cert: "none", want: before.Time},
	} {
		now := end.Add(-2 * time.Hour)
		if tc.late {
			now = end
		}
		got := expiry(&clientauthenticationv1.ExecCredentialStatus{ExpirationTimestamp: tc.says, ClientCertificateData: tc.cert}, now)
		if !got.Time.Equal(tc.want) {
			t.Errorf("%s: want %v, got %v", name, tc.want, got)
		}
	}
}

// TestPluginIsNotRunInALoop has a plugin that answers with another token each time, as most do. The connection takes
// another token for a change and resets its back-off.
func TestPluginIsNotRunInALoop(t *testing.T) {
	f := &fakePlugins{}
	s, p, clk := newPluginSource(t, f)
	read := func(after time.Duration) (string, error) {
		t.Helper()
		clk.SetTime(clk.Now().Add(after))
		f.status.Token = clk.Now().String()
		e, err := s.Describe(t.Context(), client.ObjectKeyFromObject(p))
		if err != nil {
			t.Fatal(err)
		}
		k, err := s.Kubeconfig(t.Context(), e)
		return string(k.Data), err
	}
	first, err := read(0)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 { // As after each answer 401.
		if got, err := read(time.Minute); err != nil || got != first {
			t.Errorf("want the first answer again, got %s, %v", got, err)
		}
	}
	if got, err := read(time.Minute); err != nil || got == first {
		t.Errorf("want another answer after %s, got %s, %v", maxAnswerAge, got, err)
	}

	p.Status.AccessProviders[0].Cluster.Server = "https://w2.example.org"
	if err := s.profiles.(client.Client).Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	var problem *condition.Error
	if _, err := read(time.Second); !errors.As(err, &problem) || len(f.runs) != 2 {
		t.Errorf("want no run for each write of a profile, got %v and %d runs", err, len(f.runs))
	}
	f.err = errors.New("it ended with exit status 1")
	if _, err := read(minRunInterval); !errors.As(err, &problem) || len(f.runs) != 3 {
		t.Errorf("want a run for the other server, got %v and %d runs", err, len(f.runs))
	}
	f.err = nil
	if _, err := read(time.Second); !errors.As(err, &problem) || !strings.Contains(problem.Message, "exit status 1") {
		t.Errorf("want the same failure again, got %v", err)
	}
	if got, err := read(minRunInterval); err != nil || !strings.Contains(got, "w2.example.org") {
		t.Errorf("want another run soon after a failure, got %s, %v", got, err)
	}
}
