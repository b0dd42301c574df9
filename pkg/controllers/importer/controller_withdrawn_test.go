// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// importWithToken is an import with the token of a user's Secret, and the Secret, with a label.
func importWithToken(label string) (*fleetv1alpha1.ClusterImport, *corev1.Secret) {
	imp := anImport()
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &fleetv1alpha1.SecretKeyReference{Name: "token", Key: "token"},
	}
	return imp, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: imp.Namespace, Name: "token", Labels: map[string]string{fleetv1alpha1.ImportCredentialsLabel: label},
		},
		Data: map[string][]byte{"token": []byte("the-token")},
	}
}

// connected runs the import until it has a kubeconfig. Its cluster cannot be reached.
func (h *hubOfOneImport) connected() {
	h.t.Helper()
	h.settle()
	h.want(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigWritten)
}

// isWithdrawn checks that there are no credentials for the cluster, and that the import says so and is unchanged
// otherwise.
func (h *hubOfOneImport) isWithdrawn(reason string) {
	h.t.Helper()
	h.settle()
	h.want(fleetv1alpha1.ConditionKubeconfigReady, reason)
	h.want(fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessNone)
	if err := h.c.Get(h.t.Context(), client.ObjectKey{Namespace: "customers", Name: "shop-kubeconfig"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		h.t.Errorf("want no kubeconfig, got %v", err)
	}
	imp := h.get()
	if imp.Status.Kubeconfig != nil {
		h.t.Errorf("the status still names a kubeconfig: %+v", imp.Status.Kubeconfig)
	}
	for _, ref := range imp.Status.References {
		if ref.Kind == "Secret" {
			h.t.Errorf("the status still names %v", ref)
		}
	}
	h.object(clusterKind, "customers", "shop")
}

// TestWithdrawnCredentials: a user who may write a Secret takes the right to use it from imports, which continued to
// use the kubeconfig that was created with it.
func TestWithdrawnCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Secret)
		reason string
	}{
		"Label":  {func(s *corev1.Secret) { s.Labels = nil }, fleetv1alpha1.ReasonCredentialsNotAllowed},
		"False":  {func(s *corev1.Secret) { s.Labels[fleetv1alpha1.ImportCredentialsLabel] = "false" }, fleetv1alpha1.ReasonCredentialsNotAllowed},
		"Secret": {nil, fleetv1alpha1.ReasonCredentialsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			imp, token := importWithToken("true")
			h := newHub(t, imp, token)
			h.connected()
			if tc.change == nil {
				if err := h.c.Delete(t.Context(), token); err != nil {
					t.Fatal(err)
				}
			} else {
				tc.change(token)
				if err := h.c.Update(t.Context(), token); err != nil {
					t.Fatal(err)
				}
			}
			h.isWithdrawn(tc.reason)
		})
	}
}

// TestCredentialsAreWithdrawnWhileTheImportIsStopped: the import has stopped, for a reason that has nothing to do with
// its credentials.
func TestCredentialsAreWithdrawnWhileTheImportIsStopped(t *testing.T) {
	imp, token := importWithToken("true")
	h := newHub(t, imp, token)
	h.connected()
	config := h.object(config("ProviderConfig", "", "").GetObjectKind().GroupVersionKind(), imp.Namespace, "customer")
	if err := h.c.Delete(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	token.Labels = nil
	if err := h.c.Update(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	h.isWithdrawn(fleetv1alpha1.ReasonCredentialsNotAllowed)
	h.want(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonProviderConfigNotFound)
}

// TestCredentialsOfOneImport: the label with the UID of an import lets no other one use the Secret.
func TestCredentialsOfOneImport(t *testing.T) {
	for name, tc := range map[string]struct{ reason, label, want string }{
		"All":     {"Every import of the namespace may use it.", "true", fleetv1alpha1.ReasonKubeconfigWritten},
		"This":    {"This import may use it.", "import-uid", fleetv1alpha1.ReasonKubeconfigWritten},
		"Another": {"Another import may use it.", "another-uid", fleetv1alpha1.ReasonCredentialsNotAllowed},
		"Name":    {"Another user could create an import with that name.", "shop", fleetv1alpha1.ReasonCredentialsNotAllowed},
		"Empty":   {"It says nothing.", "", fleetv1alpha1.ReasonCredentialsNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			imp, token := importWithToken(tc.label)
			h := newHub(t, imp, token)
			h.settle()
			h.want(fleetv1alpha1.ConditionKubeconfigReady, tc.want)
			for _, c := range h.get().Status.Conditions {
				if strings.Contains(c.Message, "the-token") {
					t.Errorf("%s\nthe token is revealed: %s", tc.reason, c.Message)
				}
			}
		})
	}
}
