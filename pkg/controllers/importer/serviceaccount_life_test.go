// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// sampleAccount is the ServiceAccount of the sample.
var sampleAccount = fleetv1alpha1.ServiceAccountReference{Namespace: "masthead-import", Name: "reader"}

// ownerMakesAccount applies the sample as the owner of the imported clusters, which share an API server.
func (w *world) ownerMakesAccount(t *testing.T) {
	t.Helper()
	file, err := os.Open("../../../config/samples/imports/serviceaccount.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		o := &unstructured.Unstructured{}
		switch err := decoder.Decode(o); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatal(err)
		}
		if err := w.Client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// ownerAllows allows the credentials of an imported cluster to request tokens of the account of the sample.
func (w *world) ownerAllows(t *testing.T, cluster string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: sampleAccount.Namespace, Name: "reader-tokens"}, binding); err != nil {
		t.Fatal(err)
	}
	binding.Subjects = append(binding.Subjects, rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: "imported-" + cluster,
	})
	if err := w.Client.Update(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// names sets the ServiceAccount in the spec of an import, or removes it.
func (w *world) names(t *testing.T, imp *fleetv1alpha1.ClusterImport, account *fleetv1alpha1.ServiceAccountReference) {
	t.Helper()
	before := imp.DeepCopy()
	imp.Spec.Kubeconfig.ServiceAccountRef = account
	if err := w.Client.Patch(t.Context(), imp, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// kubeconfigUser returns the username that the cluster gives the holder of a kubeconfig.
func kubeconfigUser(t *testing.T, k *credentials.Credentials) string {
	t.Helper()
	config := k.RESTConfig()
	config.BearerToken = k.Token()
	c, err := client.New(config, client.Options{Scheme: controllertest.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}

func (w *world) hasNoSecret(t *testing.T, imp *fleetv1alpha1.ClusterImport) {
	t.Helper()
	err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: imp.Namespace, Name: imp.Name + "-kubeconfig"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("want no kubeconfig, got %v", err)
	}
}

// TestImportWithAServiceAccount: a real API server gives tokens of the account of the sample to credentials that have
// no other right, and the import shows the rights of the account. The cluster is strictly paused.
func TestImportWithAServiceAccount(t *testing.T) {
	const cluster = "cafe7771"
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	w.ownerMakesAccount(t)
	w.AddEKSWithRole(t, cluster, "")
	imp := importertest.NewEKSImport("account", cluster)
	imp.Spec.Pause = fleetv1alpha1.ImportPauseStrict
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{ServiceAccountRef: new(sampleAccount)}
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonServiceAccountTokenRefused)
	w.hasNoSecret(t, imp)

	w.ownerAllows(t, cluster)
	importertest.Eventually(t, "the token is requested with the credentials that the source has next", func() (bool, string) {
		w.Cloud.RotateTokens()
		w.TouchManaged(t, imp, reflection.EKSClusterAuth)
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), imp)
		c := meta.FindStatusCondition(imp.Status.Conditions, fleetv1alpha1.ConditionKubeconfigReady)
		return err == nil && c.Reason == fleetv1alpha1.ReasonKubeconfigWritten, fmt.Sprint(err, c)
	})
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessReadOnly)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
	secret, k := w.kubeconfig(t, imp)
	works(t, k)
	if user := kubeconfigUser(t, k); user != "system:serviceaccount:masthead-import:reader" {
		t.Errorf("want the kubeconfig of the account, got that of %s", user)
	}
	source := &corev1.Secret{}
	if err := w.Client.Get(
		t.Context(),
		client.ObjectKey{Namespace: imp.Namespace, Name: imp.Name + "-import-connection"},
		source,
	); err != nil {
		t.Fatal(err)
	}
	published, err := credentials.Parse(source.Data["kubeconfig"], credentials.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(secret.Data["value"]), published.Token()) || published.Host() != k.Host() {
		t.Error("want the server of the source, and none of its credentials")
	}
	capi := &clusterv1.Cluster{}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(imp), capi); err != nil || capi.Spec.Paused == nil || !*capi.Spec.Paused {
		t.Errorf("want the Cluster paused: %v", err)
	}

	w.names(t, imp, &fleetv1alpha1.ServiceAccountReference{Namespace: sampleAccount.Namespace, Name: "other"})
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonServiceAccountTokenRefused)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessNone)
	w.hasNoSecret(t, imp)
	w.Unimport(t, imp)
}

// TestServiceAccountInPlaceOfTheAdministrator: an import has an administrator's credentials. With an account that does
// not exist it has no credentials, with one that exists it has that account's, and without one its own again.
func TestServiceAccountInPlaceOfTheAdministrator(t *testing.T) {
	const cluster = "cafe7772"
	w := modern(t)
	w.Cloud.FailOnMutation(t)
	w.ownerMakesAccount(t)
	w.AddEKSWithRole(t, cluster, importertest.Admin)
	imp := importertest.NewEKSImport("downgrade", cluster)
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceProvider}
	w.Create(t, imp)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessAdmin)

	w.names(t, imp, &fleetv1alpha1.ServiceAccountReference{Namespace: sampleAccount.Namespace, Name: "missing"})
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonServiceAccountNotFound)
	w.hasNoSecret(t, imp)

	w.names(t, imp, new(sampleAccount))
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessReadOnly)
	if imp.Status.Kubeconfig == nil || imp.Status.Kubeconfig.ExpirationTime == nil {
		t.Errorf("want the status to say when the token expires, got %v", imp.Status.Kubeconfig)
	}
	before, _ := w.kubeconfig(t, imp)

	w.names(t, imp, nil)
	w.WaitForReason(t, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessAdmin)
	after, _ := w.kubeconfig(t, imp)
	if _, marked := after.Annotations[fleetv1alpha1.ImportServiceAccountAnnotation]; after.UID != before.UID || marked {
		t.Errorf("want the same Secret, with nothing of the account, got %v", after.Annotations)
	}
	w.Unimport(t, imp)
}
