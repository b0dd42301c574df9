// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

const poolProvider = "//iam.googleapis.com/projects/123456789/locations/global/workloadIdentityPools/hubs/providers/europe"

// issuer is what a cloud knows of the hub.
func (w *world) issuer(t *testing.T) fakecloud.Hub {
	t.Helper()
	h, err := fakecloud.NewHub(t.Context(), w.Config)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// account creates a ServiceAccount of the hub, with labels.
func (w *world) account(t *testing.T, name string, labels map[string]string) *corev1.ServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: labels}}
	w.Create(t, account)
	return account
}

// forImports is the label of a ServiceAccount that every import of the namespace may name, or the one with a UID.
func forImports(value string) map[string]string {
	return map[string]string{fleetv1alpha1.ImportCredentialsLabel: value}
}

// grants lets Masthead get one ServiceAccount and request its tokens, as an owner of the namespace would, and returns a
// function that revokes that.
func (w *world) grants(t *testing.T, account string) (takeBack func()) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "tokens-of-" + account}
	w.Create(t, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{account}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"}},
	}})
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: serviceAccountNamespace, Name: serviceAccount}},
	}
	w.Create(t, binding)
	return func() {
		if err := w.Client.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
}

// federated is the identity of a ServiceAccount in Google Cloud, as the token server of the tests knows it.
func (w *world) federated(account string) *fleetv1alpha1.ImportKubeconfig {
	return &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceGoogleServiceAccount,
		Google: &fleetv1alpha1.GoogleServiceAccount{WorkloadIdentity: &fleetv1alpha1.GoogleWorkloadIdentity{
			ServiceAccountName: fleetv1alpha1.HubServiceAccountName(account), Audience: poolProvider,
			STSEndpoint: fleetv1alpha1.HTTPSURL(w.Tokens.URL() + "/v1/token"), CredentialsEndpoint: fleetv1alpha1.HTTPSURL(w.Tokens.URL()),
		}},
	}
}

// TestGKEImportWithWorkloadIdentity runs an import through its life. Its tokens are those of a service account that the
// identity of a ServiceAccount of the hub impersonates. The token server verifies the token that it receives with the
// hub's keys. That token is not valid for the hub.
func TestGKEImportWithWorkloadIdentity(t *testing.T) {
	const name, account, federated, email = "gke-federated", "identity-of-gke", "federated-token", "reader@shop-project.iam.gserviceaccount.com"
	w := modern(t)
	w.account(t, account, forImports("true"))
	w.grants(t, account)
	w.Tokens.AddPoolProvider(w.issuer(t), poolProvider, metav1.NamespaceDefault, account, fakecloud.Always(federated))
	w.Tokens.AddImpersonation(email, federated, w.CreateAPI(t, name, importertest.Reader).Token)
	k := w.federated(account)
	k.Google.WorkloadIdentity.ServiceAccountEmail = email
	w.live(t, w.gkeLife(t, name, k))

	config := rest.AnonymousClientConfig(w.Config)
	config.BearerToken = w.Tokens.Shown()
	c, err := client.New(config, client.Options{Scheme: controllertest.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.NodeList{}); config.BearerToken == "" || !apierrors.IsUnauthorized(err) {
		t.Errorf("want the hub to refuse the token that was exchanged, got %v", err)
	}
}

// TestAKSImportWithWorkloadIdentity: Entra ID receives the token of a ServiceAccount in place of a secret.
func TestAKSImportWithWorkloadIdentity(t *testing.T) {
	const name, account = "aks-federated", "identity-of-aks"
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	principal := fakecloud.ServicePrincipal{TenantID: "77777777-2222-3333-4444-555555555555", ClientID: "88888888-2222-3333-4444-555555555555"}
	w.account(t, account, forImports("true"))
	w.grants(t, account)
	w.Tokens.AddFederatedCredential(w.issuer(t), principal, metav1.NamespaceDefault, account, w.CreateAPI(t, name, importertest.Reader).Token)
	imp := w.aksLife(t, name, &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceAzureServicePrincipal,
		Azure: &fleetv1alpha1.AzureServicePrincipal{
			TenantID: principal.TenantID, ClientID: principal.ClientID, AuthorityHost: fleetv1alpha1.HTTPSURL(w.Tokens.URL()),
			WorkloadIdentity: &fleetv1alpha1.AzureWorkloadIdentity{ServiceAccountName: account},
		},
	}, entraID).imp
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
	_, k := w.kubeconfig(t, imp)
	works(t, k)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessReadOnly)
	w.Unimport(t, imp)
}

// TestServiceAccountWithoutGrant: the attacker may write ClusterImports, and names a ServiceAccount of the namespace
// for which Masthead was granted nothing. Then there is a grant, for a ServiceAccount that does not exist yet; then it
// exists, and is for another import; then it is for this one; then the grant is revoked, and with it the kubeconfig.
func TestServiceAccountWithoutGrant(t *testing.T) {
	const name, account = "gke-granted", "identity-to-grant"
	w := modern(t)
	w.Tokens.AddPoolProvider(w.issuer(t), poolProvider, metav1.NamespaceDefault, account, w.CreateAPI(t, name, importertest.Reader).Token)
	imp := w.gkeLife(t, name, w.federated(account)).imp
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonHubServiceAccountNotAllowed)
	takeBack := w.grants(t, account)
	w.TouchManaged(t, imp, reflection.GKECluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonHubServiceAccountNotFound)
	created := w.account(t, account, forImports("of-another-import"))
	w.TouchManaged(t, imp, reflection.GKECluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonCredentialsNotAllowed)
	created.Labels = forImports(string(imp.UID))
	if err := w.Client.Update(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	w.TouchManaged(t, imp, reflection.GKECluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
	_, k := w.kubeconfig(t, imp)
	works(t, k)
	takeBack()
	w.TouchManaged(t, imp, reflection.GKECluster)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonHubServiceAccountNotAllowed)
	err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: imp.Namespace, Name: imp.Name + "-kubeconfig"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("want the kubeconfig withdrawn, got %v", err)
	}
	w.Unimport(t, imp)
}

// TestNoRoleOfOursGivesTokens: with a right to the tokens of every ServiceAccount, anyone who may write a ClusterImport
// would have the cloud identities of all of them in the namespace. Nor is there a right to read them all.
func TestNoRoleOfOursGivesTokens(t *testing.T) {
	for _, dir := range []string{"../../../config/rbac", "../../../config/imports/*"} {
		granted, err := grants(dir)
		if err != nil {
			t.Fatal(err)
		}
		for right := range granted {
			if strings.Contains(right, " serviceaccounts") {
				t.Errorf("%s grants %q", dir, right)
			}
		}
	}
	sample, err := os.ReadFile("../../../config/samples/imports/workload-identity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var granted []rbacv1.PolicyRule
	for document := range strings.SplitSeq(string(sample), "\n---\n") {
		role := &rbacv1.Role{}
		if err := yaml.Unmarshal([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "Role" {
			granted = append(granted, role.Rules...)
		}
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"shop-importer"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"shop-importer"}, Verbs: []string{"create"}},
	}
	if diff := cmp.Diff(want, granted); diff != "" {
		t.Errorf("the sample grants something else (-want +got):\n%s", diff)
	}
}
