// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Imports: what is on the Secret with a kubeconfig, and says what it holds. Nothing of it counts for a kubeconfig that
// is not, byte by byte, the one that was written with it.
const (
	// ImportContentAnnotation is a digest of the kubeconfig that was written with the other annotations.
	ImportContentAnnotation = "fleet.masthead.dev/import-content"

	// ImportSourceAnnotation says which source of credentials, of those that a spec can name, the kubeconfig was made
	// with: its kind, and a digest of what names it.
	ImportSourceAnnotation = "fleet.masthead.dev/import-source"

	// ImportServiceAccountAnnotation names the ServiceAccount, as "<namespace>/<name>". A Secret without it holds the credentials
	// of the source.
	ImportServiceAccountAnnotation = "fleet.masthead.dev/import-service-account"

	// ImportTokenExpirationAnnotation is when the token expires, as RFC 3339. By both, a manager that starts knows the token, and
	// need not ask for another one.
	ImportTokenExpirationAnnotation = "fleet.masthead.dev/import-token-expiration" //nolint:gosec // A name, not a credential.
)

// ServiceAccount is the ServiceAccount of the imported cluster whose tokens the kubeconfig holds, if it is to hold such.
func (s *ClusterImportSpec) ServiceAccount() *ServiceAccountReference {
	if s.Kubeconfig == nil || s.KubeconfigSource() == KubeconfigSourceNone {
		return nil
	}
	return s.Kubeconfig.ServiceAccountRef
}
