// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// describeSource names the source of credentials in a spec: its kind, and a digest of what distinguishes it from others
// of its kind. It excludes what the source gives: a recreated Secret of the same name, or a token that the provider
// replaced, is the same source. It also excludes the ServiceAccount of the imported cluster, which has its own mark.
func describeSource(s fleetv1alpha1.ClusterImportSpec) string {
	source, k := s.KubeconfigSource(), s.Kubeconfig
	parts := []string{string(source)}
	named := func(ref *fleetv1alpha1.SecretKeyReference) { parts = append(parts, "Secret", ref.Name, ref.Key) }
	switch {
	case k == nil:
		parts = append(parts, string(fleetv1alpha1.KubeconfigUserUser))
	case source == fleetv1alpha1.KubeconfigSourceProvider:
		parts = append(parts, string(cmp.Or(k.User, fleetv1alpha1.KubeconfigUserUser)))
	case source == fleetv1alpha1.KubeconfigSourceToken && k.TokenSecretRef != nil:
		named(k.TokenSecretRef)
	case source == fleetv1alpha1.KubeconfigSourceGoogleServiceAccount && k.Google != nil:
		if g := k.Google.WorkloadIdentity; g != nil {
			parts = append(parts, "WorkloadIdentity", string(g.ServiceAccountName), g.Audience, g.ServiceAccountEmail, g.STS(), g.Credentials())
		} else {
			named(&k.Google.KeySecretRef)
		}
	case source == fleetv1alpha1.KubeconfigSourceAzureServicePrincipal && k.Azure != nil:
		parts = append(parts, token.EntraEndpoint(k.Azure), k.Azure.ClientID)
		if a := k.Azure.WorkloadIdentity; a != nil {
			parts = append(parts, "WorkloadIdentity", string(a.ServiceAccountName))
		} else {
			named(&k.Azure.ClientSecretRef)
		}
	}
	if k != nil && k.Server != nil {
		parts = append(parts, "Server", string(k.Server.URL), string(k.Server.Certificate))
	}
	texts := make([][]byte, 0, len(parts))
	for _, p := range parts {
		texts = append(texts, []byte(p))
	}
	return string(source) + "/" + objects.DigestParts(texts...)[:16]
}

// mark records in the Secret what its kubeconfig is: from which source, and, if it holds a token of a ServiceAccount of
// the imported cluster, of which one and until when. The digest binds all of that to the kubeconfig: a version of
// Masthead that does not know these marks leaves them when it writes other credentials. The digested content has a
// token of a cloud or of an API server, or a key, which cannot be guessed.
func mark(s *scope, k kubeconfig, secret *corev1.Secret) {
	delete(secret.Annotations, fleetv1alpha1.ImportServiceAccountAnnotation)
	delete(secret.Annotations, fleetv1alpha1.ImportTokenExpirationAnnotation)
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[fleetv1alpha1.ImportSourceAnnotation] = describeSource(s.imp.Spec)
	secret.Annotations[fleetv1alpha1.ImportContentAnnotation] = objects.DigestParts(secret.Data[kubeconfigKey])
	if k.account != nil {
		maps.Copy(secret.Annotations, map[string]string{
			fleetv1alpha1.ImportServiceAccountAnnotation:  k.account.Namespace + "/" + k.account.Name,
			fleetv1alpha1.ImportTokenExpirationAnnotation: k.expires.UTC().Format(time.RFC3339),
		})
	}
}

// currentMark is what a mark of a Secret says about the kubeconfig in it. It is empty if the Secret does not hold the
// kubeconfig that was written with its marks.
func currentMark(secret *corev1.Secret, mark string) string {
	if secret.Annotations[fleetv1alpha1.ImportContentAnnotation] != objects.DigestParts(secret.Data[kubeconfigKey]) {
		return ""
	}
	return secret.Annotations[mark]
}

// isOfAccount reports whether a Secret holds a token of an account.
func isOfAccount(secret *corev1.Secret, account fleetv1alpha1.ServiceAccountReference) bool {
	return currentMark(secret, fleetv1alpha1.ImportServiceAccountAnnotation) == account.Namespace+"/"+account.Name
}

// accountExpiry is when the account token in a Secret expires, and whether it works until then. A claim that it lives
// longer than was requested is not trusted.
func accountExpiry(secret *corev1.Secret, now time.Time) (at time.Time, works bool) {
	at, err := time.Parse(time.RFC3339, currentMark(secret, fleetv1alpha1.ImportTokenExpirationAnnotation))
	return at, err == nil && now.Before(at) && !at.After(now.Add(workload.TokenLife))
}

// isWanted reports whether a Secret holds credentials of the source that the spec names now and, if the spec names a
// ServiceAccount of the imported cluster, a token of that one. A Secret without marks does not.
func isWanted(s *scope, secret *corev1.Secret) bool {
	account := s.imp.Spec.ServiceAccount()
	return currentMark(secret, fleetv1alpha1.ImportSourceAnnotation) == describeSource(s.imp.Spec) && (account == nil || isOfAccount(secret, *account))
}

// holdsOtherCredentials reports whether a Secret's marks name other credentials than those. One without marks for its
// source, as older versions of Masthead left it, is kept until the source is read.
func holdsOtherCredentials(s *scope, secret *corev1.Secret) bool {
	account, source := s.imp.Spec.ServiceAccount(), currentMark(secret, fleetv1alpha1.ImportSourceAnnotation)
	return source != "" && source != describeSource(s.imp.Spec) || account != nil && !isOfAccount(secret, *account)
}

// withdrawingOthers removes the Secret if the credentials that the spec asks for are missing and it holds other ones:
// those of a source that the spec named before, whose withdrawal would no longer be noticed, or, where the spec names
// an account, those of the source itself or of another account.
func (r *kubeconfigs) withdrawingOthers(ctx context.Context, s *scope, why error) error {
	problem, reported := errors.AsType[*condition.Error](why)
	secret, err := r.ownKubeconfig(ctx, s)
	switch {
	case apierrors.IsNotFound(err):
		return why
	case err != nil:
		return errors.Join(why, err)
	case isWanted(s, secret):
		return why
	case reported:
		return withdrawnError{problem}
	case holdsOtherCredentials(s, secret):
		return withdrawnUntilRequested(s.imp.Spec)
	default:
		return why
	}
}

// withdrawnUntilRequested is for a Secret with other credentials than the spec asks for, in a pass that ends before it
// requests these.
func withdrawnUntilRequested(s fleetv1alpha1.ClusterImportSpec) error {
	if s.ServiceAccount() != nil {
		return withdrawn(fleetv1alpha1.ReasonServiceAccountTokenUnavailable,
			"No token of the ServiceAccount has been requested from the imported cluster yet")
	}
	return withdrawn(fleetv1alpha1.ReasonCredentialsNotFound, "There are no credentials of the source that the spec names yet")
}
