// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

const (
	server  = "https://w1.example.org:6443"
	secretA = `{"name":"a","key":"config"}`
)

// kubeconfig has a server and an authority of its own, which must never be used.
const kubeconfig = `
clusters:
- name: x
  cluster:
    server: https://elsewhere.example.org
    certificate-authority-data: bm9uZQ==
    insecure-skip-tls-verify: true
users:
- {name: admin, user: {token: admins}}
- {name: reader, user: {token: readers}}
- {name: runs, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}}
contexts:
- {name: admin, context: {cluster: x, user: admin}}
- {name: reader, context: {cluster: x, user: reader}}
- {name: runs, context: {cluster: x, user: runs}}
current-context: admin
`

func provider(name, config string) inventoryv1alpha1.AccessProvider {
	return inventoryv1alpha1.AccessProvider{Name: name, Cluster: clientcmdv1.Cluster{
		Server: server, Extensions: []clientcmdv1.NamedExtension{
			{Name: "another", Extension: runtime.RawExtension{Raw: []byte(`[]`)}},
			{Name: execExtension, Extension: runtime.RawExtension{Raw: []byte(config)}},
		},
	}}
}

func by(providers ...inventoryv1alpha1.AccessProvider) func(*inventoryv1alpha1.ClusterProfile) {
	return func(p *inventoryv1alpha1.ClusterProfile) { p.Status.AccessProviders = providers }
}

func newProfile(change ...func(*inventoryv1alpha1.ClusterProfile)) *inventoryv1alpha1.ClusterProfile {
	p := &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "w1", UID: "u1", CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
			Labels:      map[string]string{fleetv1alpha1.EnrollLabel: "gold", inventoryv1alpha1.LabelClusterManagerKey: "other"},
			Annotations: map[string]string{},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "other"}},
	}
	by(provider(kubeconfigReader, secretA))(p)
	for _, fn := range change {
		fn(p)
	}
	return p
}

func newSecret(namespace, name, of string, kv ...string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: "s1", ResourceVersion: "7", Labels: map[string]string{ProfileLabel: of},
		},
		Data: map[string][]byte{},
	}
	for i := 0; i < len(kv); i += 2 {
		s.Data[kv[i]] = []byte(kv[i+1])
	}
	return s
}

// newPushed returns a Secret that another tool copied to the namespace of a consumer.
func newPushed(namespace string) *corev1.Secret {
	s := newSecret("ns", "a", "w1", "config", kubeconfig, "token", "plain")
	s.Labels[ProfileNamespaceLabel] = namespace
	return s
}

// newSource also returns which Secrets are read.
func newSource(t *testing.T, objects ...client.Object) (*Source, *[]client.ObjectKey) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, inventoryv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	read := &[]client.ObjectKey{}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption,
		) error {
			if _, ok := obj.(*inventoryv1alpha1.ClusterProfile); !ok {
				*read = append(*read, key)
			}
			return c.Get(ctx, key, obj, o...)
		},
	}).Build()
	s, err := New(Options{Cached: c, Live: c})
	if err != nil {
		t.Fatal(err)
	}
	return s, read
}

var w1 = types.NamespacedName{Namespace: "ns", Name: "w1"}

func TestDescribe(t *testing.T) {
	type change = func(*inventoryv1alpha1.ClusterProfile)
	type want struct {
		none, paused, ready, credentials bool
		reason, message                  string
	}
	good := newSecret("ns", "a", "w1", "config", kubeconfig)
	refused := func(message string) want {
		return want{reason: fleetv1alpha1.ReasonBadKubeconfig, message: message}
	}
	const another = "names a Secret in another namespace"
	cases := map[string]struct {
		reason string
		change change
		secret *corev1.Secret
		want   want
	}{
		"Enrolled": {reason: "The label enrols.", secret: good, want: want{ready: true, credentials: true}},
		"NoLabel": {
			reason: "Nothing enrols.",
			change: func(p *inventoryv1alpha1.ClusterProfile) { delete(p.Labels, fleetv1alpha1.EnrollLabel) },
			want:   want{none: true},
		},
		"NoSecret": {reason: "There is none yet.", want: want{ready: true}},
		"NoConsent": {
			reason: "The Secret is of another profile.", secret: newSecret("ns", "a", "w2"), want: want{ready: true},
		},
		"Pushed": {
			reason: "The Secret is of a profile in another namespace.", secret: newPushed("fleet"), want: want{ready: true},
		},
		"Unlabelled": {
			reason: "The Secret may be anything.", secret: newSecret("ns", "a", ""), want: want{ready: true},
		},
		"Paused": {
			reason: "A user wants it left alone.", secret: good, want: want{paused: true, ready: true, credentials: true},
			change: func(p *inventoryv1alpha1.ClusterProfile) { p.Annotations[clusterv1.PausedAnnotation] = "" },
		},
		"OursByLabel": {
			reason: "Masthead's own.", want: want{none: true},
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				p.Labels[inventoryv1alpha1.LabelClusterManagerKey] = fleetv1alpha1.FieldManager
			},
		},
		"OursByManager": {
			reason: "Masthead's own, whose label was removed.", want: want{none: true},
			change: func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = fleetv1alpha1.FieldManager },
		},
		"OursByCluster": {
			reason: "A copy of Masthead's own.", want: want{none: true},
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				p.Annotations[fleetv1alpha1.ClusterNameAnnotation] = "capi/ns/w1"
			},
		},
		"NoProvider": {
			reason: "The other cluster manager has not written it yet.", change: by(),
			want: want{reason: fleetv1alpha1.ReasonNotReady, message: "no access provider yet"},
		},
		"OtherProvider": {
			reason: "No program is run for it.", change: by(provider("google", `{}`)),
			want: refused("supported for its namespace: kubeconfig-secretreader, secretreader"),
		},
		"SecondProvider": {
			reason: "One of several is supported.",
			change: by(provider("google", `{}`), provider(kubeconfigReader, secretA)), secret: good,
			want: want{ready: true, credentials: true},
		},
		"Deprecated": {
			reason: "The older list of the API.", secret: good, want: want{ready: true, credentials: true},
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.CredentialProviders, p.Status.AccessProviders = p.Status.AccessProviders, nil
			},
		},
		"Token": {
			reason: "The Secret is named after the cluster.", change: by(provider(tokenReader, `{"clusterName":"a"}`)),
			secret: good, want: want{ready: true, credentials: true},
		},
		"SameNamespace": {
			reason: "It may be named.",
			change: by(provider(kubeconfigReader, `{"name":"a","key":"config","namespace":"ns"}`)), secret: good,
			want: want{ready: true, credentials: true},
		},
		"OtherNamespace": {
			reason: "The manager may read it, the profile's author may not.", want: refused(another),
			change: by(provider(kubeconfigReader, `{"name":"a","key":"config","namespace":"kube-system"}`)),
			secret: newSecret("kube-system", "a", "w1"),
		},
		"OtherNamespaceToken": {
			reason: "As above.", change: by(provider(tokenReader, `{"clusterName":"a","namespace":"kube-system"}`)),
			want: refused(another),
		},
		"OtherCase": {
			reason: "The plugin's parser ignores case.",
			change: by(provider(kubeconfigReader, `{"name":"a","key":"config","NAMESPACE":"kube-system"}`)),
			want:   refused(another),
		},
		"Path": {
			reason: "The name is no path.",
			change: by(provider(kubeconfigReader, `{"name":"../../kube-system/secrets/a","key":"config"}`)),
			want:   refused("does not name a Secret"),
		},
		"PathToken": {
			reason: "As above.", change: by(provider(tokenReader, `{"clusterName":"../a"}`)),
			want: refused("does not name a Secret"),
		},
		"NoName": {
			reason: "It is required.", change: by(provider(kubeconfigReader, `{"key":"config"}`)),
			want: refused("does not name a Secret"),
		},
		"NoKey": {
			reason: "It is required.", change: by(provider(kubeconfigReader, `{"name":"a"}`)),
			want: refused("does not name a Secret and a key"),
		},
		"Malformed": {
			reason: "It is no configuration.", change: by(provider(kubeconfigReader, `"a"`)),
			want: refused("is not its configuration"),
		},
		"NoExtension": {
			reason: "Nothing names a Secret.", want: refused("exactly one extension"),
			change: func(p *inventoryv1alpha1.ClusterProfile) { p.Status.AccessProviders[0].Cluster.Extensions = nil },
		},
		"Large": {
			reason: "It is passed to a plugin, or kept in memory.", want: refused("larger than 65536 bytes"),
			change: by(provider(kubeconfigReader, `{"name":"a","key":"config","x":"`+strings.Repeat("x", maxProvider)+`"}`)),
		},
		"TwoExtensions": {
			reason: "Any choice would be a guess.", want: refused("exactly one extension"),
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				c := &p.Status.AccessProviders[0].Cluster
				c.Extensions = append(c.Extensions, c.Extensions...)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{newProfile()}
			if tc.change != nil {
				objects = []client.Object{newProfile(tc.change)}
			}
			if tc.secret != nil {
				objects = append(objects, tc.secret.DeepCopy())
			}
			s, read := newSource(t, objects...)
			e, err := s.Describe(t.Context(), w1)
			if errors.Is(err, connection.ErrNotEnrolled) != tc.want.none || !tc.want.none && err != nil {
				t.Fatalf("%s\ngot %v, %v", tc.reason, e, err)
			}
			if slices.ContainsFunc(*read, func(k client.ObjectKey) bool { return k.Namespace != "ns" }) {
				t.Errorf("%s\na Secret of another namespace was read: %v", tc.reason, *read)
			}
			if tc.want.none {
				return
			}
			if e.Class != "gold" || e.Object.Kind != "ClusterProfile" || e.Object.UID != "u1" {
				t.Errorf("want the class and the object, got %+v", e)
			}
			got := want{
				paused: e.Paused, ready: e.Ready, credentials: e.CredentialsVersion != "",
				reason: e.NotReadyReason, message: tc.want.message,
			}
			diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}))
			if diff != "" || !strings.Contains(e.NotReadyMessage, tc.want.message) {
				t.Errorf("%s\n-want +got:\n%s\nmessage: %s", tc.reason, diff, e.NotReadyMessage)
			}
		})
	}
	s, _ := newSource(t)
	if _, err := s.Describe(t.Context(), w1); !errors.Is(err, connection.ErrNotEnrolled) {
		t.Errorf("want a profile that is gone not to be enrolled, got %v", err)
	}
}

// TestCredentialsVersionChangesWithTheServer changes what the profile says while its Secret stays the same.
func TestCredentialsVersionChangesWithTheServer(t *testing.T) {
	version := func(change ...func(*inventoryv1alpha1.ClusterProfile)) string {
		s, _ := newSource(t, newProfile(change...), newSecret("ns", "a", "w1"))
		e, err := s.Describe(t.Context(), w1)
		if err != nil {
			t.Fatal(err)
		}
		return e.CredentialsVersion
	}
	before := version()
	if got := version(func(p *inventoryv1alpha1.ClusterProfile) {
		p.Status.Conditions = []metav1.Condition{{Type: "ControlPlaneHealthy", Status: metav1.ConditionFalse}}
		p.Status.AccessProviders = append(p.Status.AccessProviders, provider("google", `{}`))
	}); got != before {
		t.Error("want the same version if the other cluster manager writes anything else")
	}
	for name, change := range map[string]func(*clientcmdv1.Cluster){
		"server":       func(c *clientcmdv1.Cluster) { c.Server = "https://w1.example.com" },
		"authority":    func(c *clientcmdv1.Cluster) { c.CertificateAuthorityData = []byte("x") },
		"server name":  func(c *clientcmdv1.Cluster) { c.TLSServerName = "x" },
		"insecure TLS": func(c *clientcmdv1.Cluster) { c.InsecureSkipTLSVerify = true },
		"context": func(c *clientcmdv1.Cluster) {
			c.Extensions[1].Extension.Raw = []byte(`{"name":"a","key":"config","context":"reader"}`)
		},
	} {
		if version(func(p *inventoryv1alpha1.ClusterProfile) { change(&p.Status.AccessProviders[0].Cluster) }) == before {
			t.Errorf("want another version for another %s", name)
		}
	}
}

func TestKubeconfig(t *testing.T) {
	type want struct {
		token, host, reason string
		none                bool
	}
	withContext := func(name string) func(*inventoryv1alpha1.ClusterProfile) {
		return by(provider(kubeconfigReader, fmt.Sprintf(`{"name":"a","key":"config","context":%q}`, name)))
	}
	withServer := func(s string) func(*inventoryv1alpha1.ClusterProfile) {
		return func(p *inventoryv1alpha1.ClusterProfile) { p.Status.AccessProviders[0].Cluster.Server = s }
	}
	token := by(provider(tokenReader, `{"clusterName":"a"}`))
	good := newSecret("ns", "a", "w1", "config", kubeconfig, "token", "plain")
	cases := map[string]struct {
		reason string
		change func(*inventoryv1alpha1.ClusterProfile)
		secret *corev1.Secret
		want   want
	}{
		"Kubeconfig": {
			reason: "The server is the profile's, the user the Secret's.", secret: good,
			want: want{token: "admins", host: server},
		},
		"Context": {
			reason: "The profile names the context.", change: withContext("reader"), secret: good,
			want: want{token: "readers", host: server},
		},
		"NoContext": {
			reason: "There is no such context.", change: withContext("none"), secret: good,
			want: want{reason: credentials.ReasonMalformed},
		},
		"Exec": {
			reason: "It would run a program.", change: withContext("runs"), secret: good,
			want: want{reason: credentials.ReasonRefused},
		},
		"Token": {
			reason: "The token alone is in the Secret.", change: token, secret: good,
			want: want{token: "plain", host: server},
		},
		"NoToken": {
			reason: "There is none.", change: token, secret: newSecret("ns", "a", "w1"),
			want: want{reason: credentials.ReasonEmpty},
		},
		"NoKey": {
			reason: "There is no kubeconfig.", secret: newSecret("ns", "a", "w1"),
			want: want{reason: credentials.ReasonEmpty},
		},
		"NoSecret": {reason: "There is none.", want: want{none: true}},
		"NoConsent": {
			reason: "A token of the namespace that is not meant for the profile is not sent to its server.", change: token,
			secret: newSecret("ns", "a", "", "token", "plain"), want: want{reason: credentials.ReasonNotOurs},
		},
		"Pushed": {
			reason: "Nor is one that is meant for a profile of that name in another namespace.", change: token,
			secret: newPushed("fleet"), want: want{reason: credentials.ReasonNotOurs},
		},
		"OtherNamespace": {
			reason: "It is not read.", secret: good, want: want{reason: credentials.ReasonRefused},
			change: by(provider(kubeconfigReader, `{"name":"a","key":"config","namespace":"kube-system"}`)),
		},
		"Metadata": {
			reason: "The profile's server is as untrusted as a kubeconfig's.",
			change: withServer("https://169.254.169.254"), secret: good,
			want: want{reason: credentials.ReasonBadServer},
		},
		"Denied": {
			reason: "The operator denies it.", change: withServer("https://10.1.2.3"), secret: good,
			want: want{reason: credentials.ReasonDenied},
		},
		"PlainHTTP": {
			reason: "Credentials are not sent in plain text.", change: withServer("http://w1.example.org"), secret: good,
			want: want{reason: credentials.ReasonBadServer},
		},
		"Insecure": {
			reason: "The operator does not allow it.", secret: good, want: want{reason: credentials.ReasonRefused},
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.AccessProviders[0].Cluster.InsecureSkipTLSVerify = true
			},
		},
		"AuthorityFile": {
			reason: "It would read a file of the manager.", secret: good, want: want{reason: credentials.ReasonRefused},
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.AccessProviders[0].Cluster.CertificateAuthority = "/etc/ca.crt"
			},
		},
		"Proxy": {
			reason: "The operator does not allow it.", secret: good, want: want{reason: credentials.ReasonRefused},
			change: func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.AccessProviders[0].Cluster.ProxyURL = "http://proxy.example.org"
			},
		},
		"Recreated": {
			reason: "It is another enrolment now.", secret: good, want: want{none: true},
			change: func(p *inventoryv1alpha1.ClusterProfile) { p.UID = "u2" },
		},
		"Ours": {
			reason: "Masthead's own is never enrolled.", secret: good, want: want{none: true},
			change: func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = fleetv1alpha1.FieldManager },
		},
		"Unenrolled": {
			reason: "What is left in the cluster must still be cleaned up.", secret: good,
			want:   want{token: "admins", host: server},
			change: func(p *inventoryv1alpha1.ClusterProfile) { delete(p.Labels, fleetv1alpha1.EnrollLabel) },
		},
	}
	denied, err := credentials.ParseCIDR("10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{newProfile()}
			if tc.change != nil {
				objects = []client.Object{newProfile(tc.change)}
			}
			if tc.secret != nil {
				objects = append(objects, tc.secret.DeepCopy())
			}
			s, read := newSource(t, objects...)
			enrolled := connection.ObjectReference{Namespace: "ns", Name: "w1", UID: "u1"}
			raw, err := s.Kubeconfig(t.Context(), &connection.Enrolment{Object: enrolled})
			got := want{none: errors.Is(err, connection.ErrNoCredentials)}
			if err == nil {
				options := credentials.Options{}
				options.DeniedCIDRs = append(options.DeniedCIDRs, denied)
				var c *credentials.Credentials
				if c, err = credentials.Parse(raw.Data, options); err == nil {
					got.token, got.host = c.Token(), c.Host()
				}
			}
			if invalid, ok := errors.AsType[*credentials.InvalidError](err); ok {
				got.reason = invalid.Reason
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s\nerror: %v", tc.reason, diff, err)
			}
			if raw.SecretKey != (connection.SecretKey{}) {
				t.Errorf("want nothing published for others, got %v", raw.SecretKey)
			}
			theirs := client.ObjectKey{Namespace: "ns", Name: "a"}
			if slices.ContainsFunc(*read, func(k client.ObjectKey) bool { return k != theirs }) {
				t.Errorf("another Secret was read: %v", *read)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	key := connection.Key{Source: SourceName, Namespace: "ns", Name: "w1"}
	metadata := func(labels map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: labels}}
	}
	ours := newProfile(func(p *inventoryv1alpha1.ClusterProfile) {
		p.Spec.ClusterManager.Name = fleetv1alpha1.FieldManager
	})
	unlabelled := newProfile(func(p *inventoryv1alpha1.ClusterProfile) { p.Labels = nil })
	for name, tc := range map[string]struct {
		reason string
		got    []connection.Key
		want   []connection.Key
	}{
		"Profile": {"It may be enrolled.", keysOfProfile(newProfile()), []connection.Key{key}},
		"NoLabel": {"It may have been enrolled.", keysOfProfile(unlabelled), []connection.Key{key}},
		"Ours":    {"It never is.", keysOfProfile(ours), nil},
		"Secret": {
			"Its label names the profile.", keysOfSecret(metadata(map[string]string{ProfileLabel: "w1"})), []connection.Key{key},
		},
		"Pushed": {
			"Its profile is in another namespace.",
			keysOfSecret(metadata(map[string]string{ProfileLabel: "w1", ProfileNamespaceLabel: "fleet"})), nil,
		},
		"Other": {"It has none.", keysOfSecret(metadata(nil)), nil},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestNamedProfile(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		labels map[string]string
		want   string
	}{
		"None":      {reason: "It may be anything."},
		"Namespace": {reason: "It names no profile.", labels: map[string]string{ProfileNamespaceLabel: "ns"}},
		"Profile":   {reason: "It is in the Secret's namespace.", labels: map[string]string{ProfileLabel: "w1"}, want: "w1"},
		"Both":      {reason: "The same.", labels: map[string]string{ProfileLabel: "w1", ProfileNamespaceLabel: "ns"}, want: "w1"},
		"Other":     {reason: "Another of that name.", labels: map[string]string{ProfileLabel: "w1", ProfileNamespaceLabel: "fleet"}},
		"Empty":     {reason: "No namespace is this one.", labels: map[string]string{ProfileLabel: "w1", ProfileNamespaceLabel: ""}},
	} {
		secret := &metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: tc.labels}
		if got := namedProfile(secret); got != tc.want {
			t.Errorf("%s: %s want %q, got %q", name, tc.reason, tc.want, got)
		}
	}
}
