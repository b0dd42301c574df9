// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package capi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/capi"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/providers/kubeconfig"
)

// patience is the timeout for conditions that a test waits for.
const patience = time.Minute

// TestEnrolmentOnARealHub runs enrolments by both sources against a real API server, which is hub and workload cluster
// in one: the connection uses another UID for the hub.
func TestEnrolmentOnARealHub(t *testing.T) {
	logf.SetLogger(logr.Discard())
	cfg := startHub(t)
	scheme := kruntime.NewScheme()
	for _, add := range []func(*kruntime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, fleetv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	hub, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	content := parseKubeconfig(t, hub, cfg)
	p := startProvider(t, cfg, scheme)
	cluster := func() *clusterv1.Cluster {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1", Labels: map[string]string{fleetv1alpha1.EnrollLabel: "gold"}}}
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.example.org", Kind: "X", Name: "c1"}
		return c
	}
	provision := func(c *clusterv1.Cluster) {
		c.Status.Initialization.InfrastructureProvisioned = new(true)
		must(t, hub.Status().Update(ctx, c))
	}
	const fromCluster, fromSecret = mcr.ClusterName("capi/default/c1"), mcr.ClusterName("kubeconfig/default/s1")

	c := cluster()
	must(t, hub.Create(ctx, c))
	waitFor(t, p, fromCluster, connection.StatePending, fleetv1alpha1.ReasonNotReady)
	provision(c)
	waitFor(t, p, fromCluster, connection.StatePending, fleetv1alpha1.ReasonNoCredentials)
	must(t, hub.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": content},
	}))
	waitFor(t, p, fromCluster, connection.StatePending, fleetv1alpha1.ReasonClassNotFound)
	must(t, hub.Create(ctx, &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gold"},
		Spec:       fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled}},
	}))
	waitFor(t, p, fromCluster, connection.StatePending, fleetv1alpha1.ReasonNamespaceNotAllowed)
	allow := func(a *fleetv1alpha1.AllowedNamespaces) {
		t.Helper()
		class := &fleetv1alpha1.EnrollmentClass{}
		must(t, hub.Get(ctx, client.ObjectKey{Name: "gold"}, class))
		class.Spec.AllowedNamespaces = a
		must(t, hub.Update(ctx, class))
	}
	labelNamespace := func(v string) {
		t.Helper()
		ns := &corev1.Namespace{}
		must(t, hub.Get(ctx, client.ObjectKey{Name: "default"}, ns))
		base := ns.DeepCopy()
		metav1.SetMetaDataLabel(&ns.ObjectMeta, "fleet", v)
		must(t, hub.Patch(ctx, ns, client.MergeFrom(base)))
	}
	// By its labels, by its name, and as one of all.
	allow(&fleetv1alpha1.AllowedNamespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "yes"}}})
	labelNamespace("yes")
	waitFor(t, p, fromCluster, connection.StateConnected, fleetv1alpha1.ReasonConnected)
	labelNamespace("no")
	waitFor(t, p, fromCluster, connection.StatePending, fleetv1alpha1.ReasonNamespaceNotAllowed)
	allow(&fleetv1alpha1.AllowedNamespaces{List: []string{"default"}})
	waitFor(t, p, fromCluster, connection.StateConnected, "")
	allow(&fleetv1alpha1.AllowedNamespaces{List: []string{"another"}})
	waitFor(t, p, fromCluster, connection.StatePending, fleetv1alpha1.ReasonNamespaceNotAllowed)
	allow(&fleetv1alpha1.AllowedNamespaces{})
	waitFor(t, p, fromCluster, connection.StateConnected, "")

	// A full class has no place for another enrolment, until its limit is raised.
	limit := func(n *int32) {
		t.Helper()
		class := &fleetv1alpha1.EnrollmentClass{}
		must(t, hub.Get(ctx, client.ObjectKey{Name: "gold"}, class))
		class.Spec.MaxClusters = n
		must(t, hub.Update(ctx, class))
	}
	const late = mcr.ClusterName("kubeconfig/default/late")
	limit(new(int32(1)))
	second := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late", Labels: map[string]string{fleetv1alpha1.EnrollLabel: "gold"}},
		Data:       map[string][]byte{"value": content},
	}
	must(t, hub.Create(ctx, second))
	waitFor(t, p, late, connection.StatePending, fleetv1alpha1.ReasonClassFull)
	waitFor(t, p, fromCluster, connection.StateConnected, "")
	limit(new(int32(2)))
	// It is the same cluster. Only an enrolment with a place sends it requests.
	waitFor(t, p, late, connection.StateBackoff, fleetv1alpha1.ReasonDuplicateCluster)
	limit(nil)
	must(t, hub.Delete(ctx, second))

	// The same cluster once more, by a Secret.
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s1", Labels: map[string]string{fleetv1alpha1.EnrollLabel: "gold"}},
		Data:       map[string][]byte{"kubeconfig": content},
	}
	must(t, hub.Create(ctx, s))
	waitFor(t, p, fromSecret, connection.StateBackoff, fleetv1alpha1.ReasonDuplicateCluster)

	// The label is changed to "false", and back.
	setLabel := func(v string) {
		t.Helper()
		must(t, hub.Get(ctx, client.ObjectKeyFromObject(c), c))
		base := c.DeepCopy()
		c.Labels[fleetv1alpha1.EnrollLabel] = v
		must(t, hub.Patch(ctx, c, client.MergeFrom(base)))
	}
	setLabel("false")
	waitGone(t, p, fromCluster)
	waitFor(t, p, fromSecret, connection.StateConnected, "")
	setLabel("gold")
	waitFor(t, p, fromCluster, connection.StateBackoff, fleetv1alpha1.ReasonDuplicateCluster)
	must(t, hub.Delete(ctx, s))
	waitGone(t, p, fromSecret)
	waitFor(t, p, fromCluster, connection.StateConnected, "")

	// The Cluster is deleted and created again under the same name.
	before, _ := p.Lookup(fromCluster)
	must(t, hub.Delete(ctx, c))
	c = cluster()
	must(t, hub.Create(ctx, c))
	waitFor(t, p, fromCluster, connection.StatePending, fleetv1alpha1.ReasonNotReady)
	provision(c)
	waitFor(t, p, fromCluster, connection.StateConnected, "")
	if after, _ := p.Lookup(fromCluster); after.Enrolment.Object.UID == before.Enrolment.Object.UID {
		t.Error("the new Cluster has the record of the old one")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startHub starts an API server with the CRDs of Masthead and of Cluster API, and stops it at the end of the test.
func startHub(t *testing.T) *rest.Config {
	t.Helper()
	definitions, err := testenv.ClusterAPICRDs(t.Context())
	must(t, err)
	env, err := testenv.New(testenv.CRDs(), filepath.Join(definitions, "cluster.x-k8s.io_clusters.yaml"))
	must(t, err)
	t.Cleanup(func() { _ = env.Stop() }) // Also stops what a failed start has left.
	cfg, err := testenv.Start(env)
	if err != nil {
		t.Fatalf("cannot start an API server: %v", err)
	}
	return cfg
}

// parseKubeconfig returns a kubeconfig with the token of a ServiceAccount that may only get kube-system.
func parseKubeconfig(t *testing.T, hub client.Client, cfg *rest.Config) []byte {
	t.Helper()
	ctx := t.Context()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "masthead"}}
	must(t, hub.Create(ctx, sa))
	must(t, hub.Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "masthead"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}, ResourceNames: []string{"kube-system"}}},
	}))
	must(t, hub.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "masthead"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "masthead"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "masthead"},
	}))
	token := &authenticationv1.TokenRequest{}
	must(t, hub.SubResource("token").Create(ctx, sa, token))
	server := cfg.Host
	if !strings.HasPrefix(server, "https://") {
		server = "https://" + server
	}
	raw, err := json.Marshal(map[string]any{
		"clusters": []any{map[string]any{"name": "x", "cluster": map[string]any{"server": server, "certificate-authority-data": cfg.CAData}}},
		"users":    []any{map[string]any{"name": "x", "user": map[string]any{"token": token.Status.Token}}},
		"contexts": []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "x", "user": "x"}}},
	})
	must(t, err)
	return raw
}

func startProvider(t *testing.T, cfg *rest.Config, scheme *kruntime.Scheme) *connection.Provider {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	must(t, err)
	clusters, err := capi.New(capi.Options{Cached: mgr.GetClient(), Live: mgr.GetAPIReader()})
	must(t, err)
	secrets, err := kubeconfig.New(kubeconfig.Options{Cached: mgr.GetClient(), Live: mgr.GetAPIReader()})
	must(t, err)
	p, err := connection.New(connection.Options{
		Sources: []connection.Source{clusters, secrets}, Gate: multicluster.NewGate(), HubUID: "another", RequireClass: true,
		Recorder: mgr.GetEventRecorder("masthead"), Credentials: credentials.Options{AllowLoopback: true},
	})
	must(t, err)
	mc, err := mcmanager.WithMultiCluster(mgr, p)
	must(t, err)
	must(t, p.SetupWithManager(mc))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mc.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with an error: %v", err)
		}
	})
	return p
}

func waitFor(t *testing.T, p *connection.Provider, name mcr.ClusterName, s connection.State, reason string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %s %s", name, s, reason), func() (bool, string) {
		c, _ := p.Lookup(name)
		return c.State == s && (reason == "" || c.Reason == reason), fmt.Sprintf("%s %s %q", c.State, c.Reason, c.Message)
	})
}

func waitGone(t *testing.T, p *connection.Provider, name mcr.ClusterName) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is gone", name), func() (bool, string) {
		c, ok := p.Lookup(name)
		return !ok, string(c.State)
	})
}

func eventually(t *testing.T, what string, check func() (bool, string)) {
	t.Helper()
	var got string
	err := testenv.Poll(t.Context(), patience, func(context.Context) (bool, error) {
		var ok bool
		ok, got = check()
		return ok, nil
	})
	if err != nil {
		t.Fatalf("waited in vain until %s; it is %s", what, got)
	}
}
