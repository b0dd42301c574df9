// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/controllers/inventory"
)

// letsOthersReachAnEnrolledCluster enrols a workload cluster, and reaches it as another program does: by the published
// ClusterProfile, with the cluster inventory API's own library and plugin, and no right but to get the Secret.
// multicluster-runtime's provider does the same: it starts a cluster with what the library returns.
func letsOthersReachAnEnrolledCluster(t *testing.T, env *envtest.Environment, hub client.Client) {
	t.Helper()
	workload, config := startWorkload(t)
	kubeconfig := func(user string) map[string][]byte {
		return map[string][]byte{"kubeconfig": withoutCurrentContext(t, config, newToken(t, workload, user))}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "w3", Labels: map[string]string{fleetv1alpha1.EnrollLabel: "reached"},
		},
		Data: kubeconfig("first"),
	}
	mustCreate(t, hub, secret, &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: "reached"},
		Spec: fleetv1alpha1.EnrollmentClassSpec{
			AllowedNamespaces: &fleetv1alpha1.AllowedNamespaces{List: []string{"default"}},
			Agent:             fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled},
		},
	})
	profile := &inventoryv1alpha1.ClusterProfile{}
	eventually(t, "the ClusterProfile of a healthy cluster", func() bool {
		return hub.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubeconfig-w3"}, profile) == nil &&
			meta.IsStatusConditionTrue(profile.Status.Conditions, inventoryv1alpha1.ClusterConditionControlPlaneHealthy)
	})

	providers, err := access.NewFromFile(newProviderFile(t, env, hub, secret.Name))
	if err != nil {
		t.Fatal(err)
	}
	reached, err := providers.BuildConfigFromCP(profile)
	if err != nil {
		t.Fatal(err)
	}
	engaged, err := cluster.New(reached)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // A cache that cannot list retries for ever.
	ended := make(chan error, 1)
	go func() { ended <- engaged.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("The engaged cluster ended with an error: %v", err)
		}
	}()
	user := func() (string, error) {
		review := &authenticationv1.SelfSubjectReview{}
		err := engaged.GetClient().Create(ctx, review)
		return review.Status.UserInfo.Username, err
	}
	const first, second = "system:serviceaccount:default:first", "system:serviceaccount:default:second"
	if got, err := user(); got != first {
		t.Fatalf("want the user of the Secret's kubeconfig, %s, got %q, %v", first, got, err)
	}
	if !engaged.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("The engaged cluster did not start")
	}
	var system corev1.Namespace
	if err := engaged.GetClient().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(profile.Status.Properties, func(p inventoryv1alpha1.Property) bool {
		return p.Name == inventory.PropertyClusterUID && p.Value == string(system.UID)
	}) {
		t.Errorf("want the profile's cluster to be reached, got the one with the UID %s", system.UID)
	}

	// The credentials are rotated, and then the old ones are refused: the plugin reads the Secret again.
	base := secret.DeepCopy()
	secret.Data = kubeconfig("second")
	if err := hub.Patch(ctx, secret, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}
	if err := workload.Delete(ctx, account); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the user of the rotated credentials", func() bool {
		got, err := user()
		if err != nil && !apierrors.IsUnauthorized(err) {
			t.Fatal(err)
		}
		return got == second
	})
	mustCreate(t, workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late"}})
	eventually(t, "what was created after the rotation", func() bool {
		return engaged.GetClient().Get(ctx, client.ObjectKey{Name: "late"}, &system) == nil
	})
}

// startWorkload starts the API server of a workload cluster, whose ServiceAccounts in the namespace default may do
// anything.
func startWorkload(t *testing.T) (client.Client, *rest.Config) {
	t.Helper()
	env, err := testenv.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	config, err := testenv.Start(env)
	if err != nil {
		t.Fatalf("cannot start the API server of the workload cluster: %v", err)
	}
	workload, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, workload, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test"},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:default",
		}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	})
	return workload, config
}

// newProviderFile builds the plugin, and returns the path of a file that has it run with a kubeconfig of the hub that
// may get one Secret.
func newProviderFile(t *testing.T, env *envtest.Environment, hub client.Client, secret string) string {
	t.Helper()
	const plugin = "sigs.k8s.io/cluster-inventory-api/plugins/kubeconfig-secretreader/cmd/plugin"
	folder := t.TempDir()
	command := filepath.Join(folder, "kubeconfig-secretreader")
	// As `make build` builds the manager, so that most of it is in the cache.
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", command, plugin)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v: %s", plugin, err, out)
	}
	mustCreate(t, hub,
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "consumer"},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret},
				Verbs: []string{"get"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "consumer"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "consumer"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "consumer"},
		},
	)
	content, err := json.Marshal(access.New([]access.Provider{{
		Name: inventory.AccessProviderName,
		ExecConfig: &clientcmdapi.ExecConfig{
			Command: command, APIVersion: "client.authentication.k8s.io/v1", ProvideClusterInfo: true,
			Env: []clientcmdapi.ExecEnvVar{{Name: "KUBECONFIG", Value: newKubeconfig(t, env, envtest.User{Name: "consumer"})}},
		},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "providers.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withoutCurrentContext is a kubeconfig with one context, which the plugin does not take unless it is named.
func withoutCurrentContext(t *testing.T, config *rest.Config, token string) []byte {
	t.Helper()
	content, err := json.Marshal(clientcmdv1.Config{
		Clusters: []clientcmdv1.NamedCluster{{Name: "w3", Cluster: clientcmdv1.Cluster{
			Server: "https://" + strings.TrimPrefix(config.Host, "https://"), CertificateAuthorityData: config.CAData,
		}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: "w3", AuthInfo: clientcmdv1.AuthInfo{Token: token}}},
		Contexts:  []clientcmdv1.NamedContext{{Name: "only", Context: clientcmdv1.Context{Cluster: "w3", AuthInfo: "w3"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func mustCreate(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
