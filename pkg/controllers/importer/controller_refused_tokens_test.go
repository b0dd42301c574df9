// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// change changes the data of a Secret.
func (w *world) change(t *testing.T, secret *corev1.Secret, key string, value []byte) {
	t.Helper()
	secret.Data = map[string][]byte{key: value}
	if err := w.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// hasNoKubeconfig checks that an import whose token was refused says so, does not reveal its secret, and has no
// kubeconfig.
func (w *world) hasNoKubeconfig(t *testing.T, imp *fleetv1alpha1.ClusterImport, secret string) {
	t.Helper()
	// A user has to act.
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionStalled, fleetv1alpha1.ReasonTokenRefused)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonTokenRefused)
	for _, c := range imp.Status.Conditions {
		if strings.Contains(c.Message, secret) {
			t.Errorf("%s tells the secret: %s", c.Type, c.Message)
		}
	}
	err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: imp.Namespace, Name: imp.Name + "-kubeconfig"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("want no kubeconfig, got %v", err)
	}
}

// TestGoogleTokensThatAreRefused: the key is not one of the account that the endpoint knows; then it is; then it is
// deleted at Google. The token that was issued works until it expires, and the import reports when it has expired.
func TestGoogleTokensThatAreRefused(t *testing.T) {
	const name, path = "gke-refused", "/google/gke-refused"
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	right, err := w.Tokens.GoogleKey(path, w.CreateAPI(t, name, importertest.Reader).Token)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := fakecloud.GoogleKey(w.Tokens.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	secret := credentialsSecret(name, map[string][]byte{"key.json": wrong})
	w.Create(t, secret)
	imp := w.gkeLife(t, name, &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceGoogleServiceAccount,
		Google: &fleetv1alpha1.GoogleServiceAccount{KeySecretRef: fleetv1alpha1.SecretKeyReference{Name: name, Key: "key.json"}},
	}).imp
	w.Create(t, imp)
	w.hasNoKubeconfig(t, imp, "PRIVATE KEY")

	w.change(t, secret, "key.json", right)
	w.TouchManaged(t, imp, reflection.GKECluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
	_, k := w.kubeconfig(t, imp)
	works(t, k)

	w.Tokens.Revoke(path)
	t.Cleanup(func() { w.Tokens.Restore(path) })
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigExpired)
	w.Tokens.Restore(path)
	// The endpoint is left alone for a while. A fixed Secret does not wait for that.
	w.change(t, secret, "key.json", append(right, '\n'))
	w.TouchManaged(t, imp, reflection.GKECluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
	w.Unimport(t, imp)
}

// TestEntraIDTokensThatAreRefused: the client, its secret or its tenant is not the one that Entra ID knows.
func TestEntraIDTokensThatAreRefused(t *testing.T) {
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	principal := fakecloud.ServicePrincipal{
		TenantID: "33333333-2222-3333-4444-555555555555", ClientID: "44444444-2222-3333-4444-555555555555", Secret: "of-this-principal",
	}
	const another = "55555555-2222-3333-4444-555555555555"
	w.Tokens.AddServicePrincipal(principal, w.CreateAPI(t, "entra-refused", importertest.Reader).Token)
	secret := credentialsSecret("principal-refused", map[string][]byte{"secret": []byte(principal.Secret), "old": []byte("of-last-year")})
	w.Create(t, secret)
	for name, tc := range map[string]struct{ tenant, client, key, reason string }{
		"entra-tenant": {another, principal.ClientID, "secret", fleetv1alpha1.ReasonTokenRefused},
		"entra-client": {principal.TenantID, another, "secret", fleetv1alpha1.ReasonTokenRefused},
		"entra-secret": {principal.TenantID, principal.ClientID, "old", fleetv1alpha1.ReasonTokenRefused},
		"entra-right":  {principal.TenantID, principal.ClientID, "secret", fleetv1alpha1.ReasonKubeconfigWritten},
	} {
		t.Run(name, func(t *testing.T) {
			imp := w.aksLife(t, name, &fleetv1alpha1.ImportKubeconfig{
				Source: fleetv1alpha1.KubeconfigSourceAzureServicePrincipal,
				Azure: &fleetv1alpha1.AzureServicePrincipal{
					TenantID: tc.tenant, ClientID: tc.client, AuthorityHost: fleetv1alpha1.HTTPSURL(w.Tokens.URL()),
					ClientSecretRef: fleetv1alpha1.SecretKeyReference{Name: secret.Name, Key: tc.key},
				},
			}, entraID).imp
			w.Create(t, imp)
			if tc.reason == fleetv1alpha1.ReasonTokenRefused {
				w.hasNoKubeconfig(t, imp, string(secret.Data[tc.key]))
			} else {
				w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, tc.reason)
			}
			w.Unimport(t, imp)
		})
	}
}

// TestTokenEndpointThatIsNotAllowed: a key file names an endpoint that the operator did not allow.
func TestTokenEndpointThatIsNotAllowed(t *testing.T) {
	const name = "gke-elsewhere"
	w := modern(t)
	key, err := fakecloud.GoogleKey("https://tokens.example.org/token")
	if err != nil {
		t.Fatal(err)
	}
	w.Create(t, credentialsSecret(name, map[string][]byte{"key.json": key}))
	imp := w.gkeLife(t, name, &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceGoogleServiceAccount,
		Google: &fleetv1alpha1.GoogleServiceAccount{KeySecretRef: fleetv1alpha1.SecretKeyReference{Name: name, Key: "key.json"}},
	}).imp
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonEndpointNotAllowed)
	w.Unimport(t, imp)
}

// TestRightsOfTheCredentialsAreShown: a user who enrols a cluster sees whether its credentials could write.
func TestRightsOfTheCredentialsAreShown(t *testing.T) {
	const editor = "import-editor"
	w := modern(t)
	w.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: editor}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}},
	}})
	for name, tc := range map[string]struct{ cluster, role, want string }{
		"rights-edit": {"cafe6661", editor, fleetv1alpha1.ReasonAccessWrite},
		"rights-none": {"cafe6662", "", fleetv1alpha1.ReasonAccessNone},
	} {
		w.AddEKSWithRole(t, tc.cluster, tc.role)
		imp := importertest.NewEKSImport(name, tc.cluster)
		w.Create(t, imp)
		w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
		w.WaitForReason(t, imp, fleetv1alpha1.ConditionWorkloadAccess, tc.want)
		w.Unimport(t, imp)
	}
}
