// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile/plugin"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// patience is the timeout for conditions that a test waits for.
const patience = time.Minute

// hub is a real API server, which is hub and workload cluster in one: the connection uses another UID for the hub.
type hub struct {
	client.Client
	t       *testing.T
	env     *envtest.Environment
	cfg     *rest.Config
	p       *connection.Provider
	profile *inventoryv1alpha1.ClusterProfile
	reads   *reads
	metrics *prometheus.Registry
	// answerFile has what the plugin of the access provider acme answers.
	answerFile string
}

// reads counts what is read from the hub's API server.
type reads struct {
	client.Reader
	n atomic.Int64
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	r.n.Add(1)
	return r.Reader.Get(ctx, key, obj, o...)
}

// TestEnrolmentOnARealHub takes a ClusterProfile of another cluster manager through its life.
func TestEnrolmentOnARealHub(t *testing.T) {
	logf.SetLogger(logr.Discard())
	h := startHub(t)
	ctx := t.Context()
	first, second := h.newToken(), h.newToken()

	h.profile = &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "w1", Labels: map[string]string{fleetv1alpha1.EnrollLabel: "gold"},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "other"}},
	}
	h.must(h.Create(ctx, h.profile))
	h.waitFor(connection.StatePending, fleetv1alpha1.ReasonNotReady)
	h.reachBy("google", h.cfg.Host, `{}`)
	h.waitFor(connection.StatePending, fleetv1alpha1.ReasonBadKubeconfig, "kubeconfig-secretreader, secretreader, acme")

	// A Secret of another namespace consents in vain.
	h.must(h.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "w1", Labels: map[string]string{clusterprofile.ProfileLabel: "w1"},
		},
		StringData: map[string]string{"token": first, "config": h.newKubeconfig(first)},
	}))
	h.reachBy("kubeconfig-secretreader", h.cfg.Host, `{"name":"w1","key":"config","namespace":"kube-system"}`)
	h.waitFor(connection.StatePending, fleetv1alpha1.ReasonBadKubeconfig, "another namespace")
	h.reachBy("secretreader", h.cfg.Host, `{"clusterName":"w1"}`)
	h.waitFor(connection.StatePending, fleetv1alpha1.ReasonNoCredentials, `Secret "w1"`)

	// So does one of its own namespace that does not name the profile.
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w1"}, StringData: map[string]string{"token": first},
	}
	h.must(h.Create(ctx, secret))
	h.label(secret, clusterprofile.ProfileLabel, "w2")
	h.label(h.profile, "touched", "yes")
	h.waitFor(connection.StatePending, fleetv1alpha1.ReasonNoCredentials)
	h.label(secret, clusterprofile.ProfileLabel, "w1")

	// Who may use the class is decided as for every enrolment.
	h.waitFor(connection.StatePending, fleetv1alpha1.ReasonClassNotFound)
	class := &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gold"},
		Spec:       fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled}},
	}
	h.must(h.Create(ctx, class))
	h.waitFor(connection.StatePending, fleetv1alpha1.ReasonNamespaceNotAllowed)
	class.Spec.AllowedNamespaces = &fleetv1alpha1.AllowedNamespaces{List: []string{"default"}}
	h.must(h.Update(ctx, class))
	h.waitFor(connection.StateConnected, fleetv1alpha1.ReasonConnected)
	if c, _ := h.p.Lookup("clusterprofile/default/w1"); c.Access != nil {
		t.Errorf("want no access published that the enrolled profile has, got %+v", c.Access)
	}

	// The Secret is read again when it changes, and when the profile says something else of it.
	before, base := h.reads.n.Load(), secret.DeepCopy()
	secret.Data = map[string][]byte{"token": []byte(second), "config": []byte(h.newKubeconfig(second))}
	h.must(h.Patch(ctx, secret, client.MergeFrom(base)))
	h.eventually("the changed Secret is read", func(connection.Cluster, bool) bool { return h.reads.n.Load() > before })
	before = h.reads.n.Load()
	h.reachBy("kubeconfig-secretreader", h.cfg.Host, `{"name":"w1","key":"config","context":"x"}`)
	h.eventually("the other key is read", func(connection.Cluster, bool) bool { return h.reads.n.Load() > before })
	h.waitFor(connection.StateConnected, fleetv1alpha1.ReasonConnected)

	h.renewsByPlugin(first, second)
	h.rotatesByPlugin()
	h.reachBy("kubeconfig-secretreader", h.cfg.Host, `{"name":"w1","key":"config","context":"x"}`)

	// An address that the operator denies is not connected to. The connection is kept until it ends.
	h.reachBy("kubeconfig-secretreader", "https://10.1.2.3", `{"name":"w1","key":"config","context":"x"}`)
	h.annotate("cluster.x-k8s.io/paused", "")
	h.waitFor(connection.StatePending, fleetv1alpha1.ReasonPaused)
	h.annotate("cluster.x-k8s.io/paused", "-")
	h.waitFor(connection.StateBackoff, fleetv1alpha1.ReasonEndpointDenied)
	h.reachBy("kubeconfig-secretreader", h.cfg.Host, `{"name":"w1","key":"config","context":"x"}`)
	h.waitFor(connection.StateConnected, fleetv1alpha1.ReasonConnected)

	// What becomes Masthead's own is not enrolled any more, nor is what has no label.
	h.label(h.profile, inventoryv1alpha1.LabelClusterManagerKey, fleetv1alpha1.FieldManager)
	h.waitGone()
	h.label(h.profile, inventoryv1alpha1.LabelClusterManagerKey, "other")
	h.waitFor(connection.StateConnected, fleetv1alpha1.ReasonConnected)
	h.label(h.profile, fleetv1alpha1.EnrollLabel, "false")
	h.waitGone()
}

// renewsByPlugin has a plugin provide tokens, of which the first is replaced in place before it expires.
func (h *hub) renewsByPlugin(first, second string) {
	h.t.Helper()
	h.answerBy(first, time.Hour)
	h.reachBy("acme", h.cfg.Host, `{}`)
	h.annotate("cluster.x-k8s.io/paused", "")
	h.waitFor(connection.StatePending, fleetv1alpha1.ReasonPaused)
	h.must(os.Remove(h.answerFile))
	h.reachBy("acme", h.cfg.Host, `{"changed":true}`) // Else the latest answer is used again.
	h.annotate("cluster.x-k8s.io/paused", "-")
	h.waitFor(connection.StateBackoff, fleetv1alpha1.ReasonNoCredentials,
		"acme provides no credentials: it ended with exit status 1")
	h.answerBy(first, time.Second) // Read again after 10 s, at least.
	h.waitFor(connection.StateConnected, fleetv1alpha1.ReasonConnected)
	before := h.connections()
	h.answerBy(second, time.Hour)
	h.eventually("the token is renewed", func(connection.Cluster, bool) bool {
		return h.connections()[credentials.CauseToken] > before[credentials.CauseToken]
	})
	after := h.connections()
	after[credentials.CauseToken] = before[credentials.CauseToken]
	if diff := cmp.Diff(before, after); diff != "" {
		h.t.Errorf("want the token swapped in the same connection (-want +got):\n%s", diff)
	}
}

// rotatesByPlugin has a plugin provide client certificates. Another one makes another connection, before the earlier is
// lost.
func (h *hub) rotatesByPlugin() {
	h.t.Helper()
	before := h.connections()
	for i, name := range []string{"first", "second"} {
		user, err := h.env.AddUser(envtest.User{Name: name, Groups: []string{"system:masters"}}, nil)
		h.must(err)
		h.answer(clientauthenticationv1.ExecCredentialStatus{
			ClientCertificateData: string(user.Config().CertData), ClientKeyData: string(user.Config().KeyData),
		}, time.Second)
		if i == 0 {
			h.reachBy("acme", h.cfg.Host, `{"certificates":true}`)
		}
		h.eventually("the connection has the certificate", func(connection.Cluster, bool) bool {
			return h.connections()[credentials.CauseClientCert] == before[credentials.CauseClientCert]+float64(i+1)
		})
	}
	after := h.connections()
	delete(after, credentials.CauseClientCert)
	if diff := cmp.Diff(before, after); diff != "" {
		h.t.Errorf("want no connection lost (-want +got):\n%s", diff)
	}
}

// answerBy makes the plugin answer with a token.
func (h *hub) answerBy(token string, life time.Duration) {
	h.t.Helper()
	h.answer(clientauthenticationv1.ExecCredentialStatus{Token: token}, life)
}

func (h *hub) answer(status clientauthenticationv1.ExecCredentialStatus, life time.Duration) {
	h.t.Helper()
	expires := metav1.NewTime(time.Now().Add(life))
	status.ExpirationTimestamp = &expires
	data, err := json.Marshal(clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: "client.authentication.k8s.io/v1", Kind: "ExecCredential"},
		Status:   &status,
	})
	h.must(err)
	h.must(os.WriteFile(h.answerFile+".new", data, 0o600))
	h.must(os.Rename(h.answerFile+".new", h.answerFile))
}

// connections are how often the cluster was connected, by cause.
func (h *hub) connections() map[string]float64 {
	h.t.Helper()
	families, err := h.metrics.Gather()
	h.must(err)
	n := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "cause" && m.GetCounter() != nil {
					n[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// newPlugins has the plugin acme for the namespace default.
func (h *hub) newPlugins() *plugin.Plugins {
	h.t.Helper()
	h.answerFile = filepath.Join(h.t.TempDir(), "answer.json")
	path := filepath.Join(h.t.TempDir(), "access.json")
	h.must(os.WriteFile(path, fmt.Appendf(nil, `{"providers":[{"name":"acme","execConfig":{
		"apiVersion":"client.authentication.k8s.io/v1","command":"/bin/cat","args":[%q]}}]}`, h.answerFile), 0o600))
	plugins, err := plugin.Load(path, []string{"default"})
	h.must(err)
	return plugins
}

func (h *hub) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func startHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{t: t}
	bases, err := testenv.ModuleCRDs(t.Context(), "sigs.k8s.io/cluster-inventory-api", "config/crd/bases")
	h.must(err)
	h.env, err = testenv.New(testenv.CRDs(), filepath.Join(bases, "multicluster.x-k8s.io_clusterprofiles.yaml"))
	h.must(err)
	t.Cleanup(func() { _ = h.env.Stop() }) // Also stops what a failed start has left.
	h.cfg, err = testenv.Start(h.env)
	h.must(err)
	if !strings.HasPrefix(h.cfg.Host, "https://") {
		h.cfg.Host = "https://" + h.cfg.Host
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, inventoryv1alpha1.AddToScheme, fleetv1alpha1.AddToScheme,
	} {
		h.must(add(scheme))
	}
	h.Client, err = client.New(h.cfg, client.Options{Scheme: scheme})
	h.must(err)
	h.startProvider(scheme)
	return h
}

func (h *hub) startProvider(scheme *runtime.Scheme) {
	h.t.Helper()
	mgr, err := ctrl.NewManager(h.cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	h.must(err)
	h.reads = &reads{Reader: mgr.GetAPIReader()}
	source, err := clusterprofile.New(clusterprofile.Options{
		Cached: mgr.GetClient(), Live: h.reads, Plugins: h.newPlugins(), Credentials: credentials.Options{AllowLoopback: true},
	})
	h.must(err)
	h.metrics = prometheus.NewRegistry()
	h.p, err = connection.New(connection.Options{
		Sources: []connection.Source{source}, Gate: multicluster.NewGate(), HubUID: "another", RequireClass: true,
		Registerer: h.metrics, ProbeInterval: time.Second, BackoffMax: time.Second,
		Recorder: mgr.GetEventRecorder("masthead"),
		Credentials: credentials.Options{
			AllowLoopback: true, DeniedCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		},
	})
	h.must(err)
	mc, err := mcmanager.WithMultiCluster(mgr, h.p)
	h.must(err)
	h.must(h.p.SetupWithManager(mc))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mc.Start(ctx) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("the manager ended with an error: %v", err)
		}
	})
}

// newToken returns a token of a ServiceAccount that may only get kube-system.
func (h *hub) newToken() string {
	h.t.Helper()
	ctx := h.t.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "masthead"}}
	for _, o := range []client.Object{account,
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "masthead"},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"},
				ResourceNames: []string{"kube-system"},
			}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "masthead"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "masthead"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "masthead"},
		},
	} {
		h.must(client.IgnoreAlreadyExists(h.Create(ctx, o)))
	}
	token := &authenticationv1.TokenRequest{}
	h.must(h.SubResource("token").Create(ctx, account, token))
	return token.Status.Token
}

// newKubeconfig has a server that nothing must contact.
func (h *hub) newKubeconfig(token string) string {
	h.t.Helper()
	raw, err := json.Marshal(clientcmdv1.Config{
		Clusters:  []clientcmdv1.NamedCluster{{Name: "x", Cluster: clientcmdv1.Cluster{Server: "https://192.0.2.1"}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: "x", AuthInfo: clientcmdv1.AuthInfo{Token: token}}},
		Contexts:  []clientcmdv1.NamedContext{{Name: "x", Context: clientcmdv1.Context{Cluster: "x", AuthInfo: "x"}}},
	})
	h.must(err)
	return string(raw)
}

// reachBy writes the profile's status as the other cluster manager does.
func (h *hub) reachBy(name, server, extension string) {
	h.t.Helper()
	base := h.profile.DeepCopy()
	provider := inventoryv1alpha1.AccessProvider{Name: name, Cluster: clientcmdv1.Cluster{
		Server: server, CertificateAuthorityData: h.cfg.CAData,
		Extensions: []clientcmdv1.NamedExtension{{
			Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: []byte(extension)},
		}},
	}}
	h.profile.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{provider}
	h.must(h.Status().Patch(h.t.Context(), h.profile, client.MergeFrom(base)))
}

func (h *hub) label(o client.Object, key, value string) {
	h.t.Helper()
	base := o.DeepCopyObject().(client.Object)
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	o.SetLabels(labels)
	h.must(h.Patch(h.t.Context(), o, client.MergeFrom(base)))
}

// annotate sets an annotation of the profile; "-" removes it.
func (h *hub) annotate(key, value string) {
	h.t.Helper()
	base := h.profile.DeepCopy()
	metav1.SetMetaDataAnnotation(&h.profile.ObjectMeta, key, value)
	if value == "-" {
		delete(h.profile.Annotations, key)
	}
	h.must(h.Patch(h.t.Context(), h.profile, client.MergeFrom(base)))
}

func (h *hub) waitFor(s connection.State, reason string, message ...string) {
	h.t.Helper()
	h.eventually(fmt.Sprintf("it is %s %s %s", s, reason, message), func(c connection.Cluster, _ bool) bool {
		return c.State == s && c.Reason == reason && strings.Contains(c.Message, strings.Join(message, ""))
	})
}

func (h *hub) waitGone() {
	h.t.Helper()
	h.eventually("it is gone", func(_ connection.Cluster, known bool) bool { return !known })
}

func (h *hub) eventually(what string, met func(connection.Cluster, bool) bool) {
	h.t.Helper()
	var c connection.Cluster
	err := testenv.Poll(h.t.Context(), patience, func(context.Context) (bool, error) {
		var known bool
		c, known = h.p.Lookup("clusterprofile/default/w1")
		return met(c, known), nil
	})
	if err != nil {
		h.t.Fatalf("waited in vain until %s; it is %s %s %q", what, c.State, c.Reason, c.Message)
	}
}
